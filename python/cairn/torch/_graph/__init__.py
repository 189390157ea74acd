"""The traced graph is read here as a Cairn graph, with what each of its operators may do."""
