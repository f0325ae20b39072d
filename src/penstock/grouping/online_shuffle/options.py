"""What can be set about the online shuffle; the same for all senders and replicas of an operator."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.common.checks import is_number, whole
from penstock.errors import InputError
from penstock.grouping.online_shuffle.hashing import shape


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlineShuffleOptions:
    """Sketches of r × c cells, looked at after every `window` events, sent when they changed by at most `mu`.

    >>> OnlineShuffleOptions().shape
    (3, 54)
    >>> OnlineShuffleOptions(window=0)
    Traceback (most recent call last):
    penstock.errors.InputError: grouping 'online_shuffle': window must be whole and at least 1; got 0
    """

    epsilon: float = 0.05  # error of a count, as a share of all events
    delta: float = 0.05  # probability of a larger error
    window: int = 1024  # N
    mu: float = 0.05  # largest η of a stable sketch
    patience: int = 16384  # events that a sender assigns before it gives up the replies that have not come
    seed: int = 0  # of the hash functions

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta"):
            value = getattr(self, name)
            self._check(name, is_number(value) and 0.0 < value < 1.0, "above 0 and below 1")
        self._check("mu", is_number(self.mu) and self.mu >= 0.0, "a number from 0 on")
        for name, least in (("window", 1), ("patience", 1), ("seed", 0)):
            whole("grouping 'online_shuffle'", name, getattr(self, name), least)

    def _check(self, name: str, holds: bool, rule: str) -> None:
        if not holds:
            raise InputError(f"grouping 'online_shuffle': {name} must be {rule}; got {getattr(self, name)!r}")

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of a sketch."""
        return shape(self.epsilon, self.delta)
