"""Reads a traced graph as a Cairn graph, and finds out what each of its operators may do (draw random numbers,
write)."""
