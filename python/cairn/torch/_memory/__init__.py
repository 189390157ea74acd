"""Measures how many bytes are really in memory, for one graph and for several graphs together."""
