"""Rewrites the traced graph: before planning into a form that is easier to plan, and afterwards into modules that
follow the plan."""
