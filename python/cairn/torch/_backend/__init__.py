"""The backend of torch.compile. It compiles each captured graph with AOTAutograd or Inductor, and runs it as its plan
says."""
