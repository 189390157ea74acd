"""The bytes that are really alive are measured here, of one graph and of several together."""
