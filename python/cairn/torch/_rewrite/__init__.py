"""The traced graph is rewritten here: before it is planned, and into the modules that follow the plan."""
