"""Inputs of a graph may be written without torch noticing. Finds out which inputs may be written, and whether they
were."""
