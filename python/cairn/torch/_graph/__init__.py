"""Reads a traced graph as a Cairn graph, and finds out what each operator does besides computing (random numbers,
writes)."""
