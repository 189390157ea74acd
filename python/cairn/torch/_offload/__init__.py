"""Moves values to the host's memory and back. Contains the link's speed, the copies, and the insertion of copies into a
graph."""
