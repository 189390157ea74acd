"""Fuses operations of a joint graph (forward and backward pass) to kernels that Inductor compiles, before the graph is
scheduled."""
