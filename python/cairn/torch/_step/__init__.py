"""Plans a whole training step within one budget, together with its optimizers if they are given."""
