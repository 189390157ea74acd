"""Converts a traced graph to a Cairn graph, and finds out what each operator does besides computing its results: random
numbers and writes."""
