"""Measures or estimates the costs of operations. Costs decide which operations a schedule runs again."""
