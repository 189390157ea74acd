"""Finds a schedule within a budget, cuts it into a forward and a backward pass, and stores the least budget known."""
