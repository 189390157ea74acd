"""Measures how many bytes are in memory, for one graph and for several graphs together."""
