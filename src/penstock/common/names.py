"""Names that a user may mistype: the error lists the right ones and the nearest."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from penstock.errors import InputError


def one_of(thing: str, name: str, known: Iterable[str]) -> str:
    """The name, or an InputError that lists the known ones and says which is nearest.

    >>> one_of("grouping", "shufle", ["shuffle", "fields"])
    Traceback (most recent call last):
    penstock.errors.InputError: grouping: no such name 'shufle'; known: shuffle, fields; did you mean 'shuffle'?
    """
    names = list(known)
    if name in names:
        return name
    raise InputError(f"{thing}: no such name {name!r}; known: {', '.join(names) or 'none'}{hint(name, names)}")


def hint(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'psps'?`, or nothing where no known name is near."""
    near = get_close_matches(str(name), list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
