"""Moves values to the host's memory and back: the link, the copies, and the places of a schedule at which they run."""
