"""Finds a schedule within a budget, cuts the schedule into a forward and a backward pass, and stores the least budget
that is known to work."""
