"""Finds out which inputs of a graph may be written without torch noticing, and whether they were."""
