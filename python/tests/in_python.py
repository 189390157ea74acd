"""Converts messages of the command `cairn` to those of the Python package, so that tests can compare the two. Only the
spelling of options differs between the messages."""

import re

_OPTION = re.compile(r"--(?P<name>[a-z][a-z-]*)(?: (?<=(?:solver|ackend) )(?P<word>(?!or\b|and\b)[a-z][\w-]*)|"
                     r" '(?P<text>[^']*)'| (?P<number>\d[\w.%]*(?: (?:[KMGTP]iB|bytes)\b)?))?")


def in_python(message):
    """Replaces options such as ``--time-limit 5s`` by ``time_limit='5s'``."""

    def spell(match):
        value = next((match[group] for group in ("word", "text", "number") if match[group] is not None), None)
        number = value is not None and value.isdecimal()
        return match["name"].replace("-", "_") + "=" + ("" if value is None else value if number else f"'{value}'")

    return _OPTION.sub(spell, message)
