"""Fusion: operations of a joint graph that Inductor compiles to one kernel, before the graph is scheduled."""
