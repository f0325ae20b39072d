"""What can go wrong, in few kinds. A message names the thing, the rule, the value and the place.

>>> raise TopologyError("operator 'parse' (app.py:12): pool must be at least 1; got 0")
Traceback (most recent call last):
penstock.errors.TopologyError: operator 'parse' (app.py:12): pool must be at least 1; got 0
"""

from __future__ import annotations


class PenstockError(Exception):
    """Base of all errors that Penstock raises on purpose."""


class TopologyError(PenstockError):
    """A topology that cannot run: names, cycles, pools, functions that cannot be shipped."""


class InputError(PenstockError):
    """A value the user gave (a file, an option, a trace, a parameter) breaks a rule."""


class AwayError(InputError):
    """Nobody answers where a source or a sink is said to be; that may be so for a while only."""


class EngineError(PenstockError):
    """The engine cannot start, or a run ended for good after its retries."""
