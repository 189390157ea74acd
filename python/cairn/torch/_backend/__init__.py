"""The backend of torch.compile takes each captured graph through AOTAutograd, or Inductor, and runs it by its plan."""
