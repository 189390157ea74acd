# Imports for the stub of cairn._cairn (nanobind_add_stub), because signatures written by hand use these names.
cairn._cairn.__prefix__:
    import os
    from collections.abc import Iterable, Iterator, Sequence
    __version__: str
