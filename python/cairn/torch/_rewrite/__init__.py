"""Rewrites the traced graph: first into a form that is easier to plan, and after planning into modules that follow the
plan."""
