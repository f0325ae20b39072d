"""What becomes of an event that fails."""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.errors import InputError

DEAD_LETTERS = "dead_letters"  # the stream on which they leave
_RULE = re.compile(r"(?:retry:([1-9]\d?)(?:,|$))?(fail|drop|dead_letter)?")


@dataclass(frozen=True, slots=True)
class OnError:
    """How often the operator is called again, and what becomes of the event if that does not help either."""

    retries: int = 0
    then: str = "fail"  # or drop, or dead_letter


def parse_on_error(text: str) -> OnError:
    """`fail`, `drop` or `dead_letter`; `retry:n` tries n times again before it fails, or before what a comma adds.

    >>> parse_on_error("drop"), parse_on_error("retry:3,dead_letter")
    (OnError(retries=0, then='drop'), OnError(retries=3, then='dead_letter'))
    """
    found = _RULE.fullmatch(text) if isinstance(text, str) else None
    if not found or not text or text.endswith(","):
        raise InputError(
            "on_error must be fail, drop, dead_letter or retry:n (from 1 to 99), as in 'retry:3' or "
            f"'retry:3,dead_letter'; got {text!r}"
        )
    return OnError(int(found[1] or 0), found[2] or "fail")
