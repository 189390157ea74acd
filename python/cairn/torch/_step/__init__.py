"""A whole training step is planned here under one budget, with its optimizers if they are told."""
