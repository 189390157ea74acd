"""Moves values to the host's memory and back. Determines the speed of the link between both, makes copies, and inserts
copies into a graph."""
