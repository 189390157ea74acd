"""The inputs of a graph may be written behind its back: which may, and whether they were."""
