"""Finds out which inputs of a graph may be written by other code without torch noticing, and whether they have been
written."""
