"""Finds a schedule within a budget, and cuts it into a forward and a backward pass. Also stores the least budget
known."""
