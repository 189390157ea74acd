# What the signatures written by hand name (nanobind_add_stub).
cairn._cairn.__prefix__:
    import os
    from collections.abc import Iterable, Iterator, Sequence
