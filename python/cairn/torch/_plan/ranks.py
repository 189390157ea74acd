"""Lets one rank of distributed training search for all ranks."""

import datetime
import json


def first_of_ranks(store, name, wait_s, find):
    """Calls ``find()`` on the first rank that asks for ``name``, and returns its result on all ranks. Returns (result,
    whether another rank has found it). A fixed rank, such as rank 0, might never ask, because ranks can have different
    steps. Results must be storable as JSON. If the search of the other rank failed, for example because it was
    interrupted, this rank searches for itself. ``wait_s``: seconds to wait for the other rank."""
    if store.add(f"{name}/asked", 1) == 1:
        try:
            found = find()
        except BaseException as error:
            store.set(name, json.dumps({"error": f"the rank that solves failed: {error}"}))
            raise
        store.set(name, json.dumps({"found": found}))
        return found, False
    store.wait([name], datetime.timedelta(seconds=wait_s))
    entry = json.loads(store.get(name))
    if "error" in entry:
        return find(), False
    return entry["found"], True
