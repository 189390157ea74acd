"""Implements the backend of torch.compile, which compiles each captured graph with AOTAutograd or Inductor, and runs it
in the order that its schedule gives."""
