"""The backend of torch.compile: what it is told, a graph's way through AOTAutograd, Inductor below it, and errors."""
