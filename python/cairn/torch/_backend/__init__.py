"""The backend of torch.compile. It compiles each captured graph with AOTAutograd or Inductor, and runs the graph in the
order that its schedule gives."""
