"""How replies correct Ĉ: by the replica's own Δ, or by the mean of the others' where there is none to go by."""

from __future__ import annotations

from typing import Any

from numba import njit

_ROUNDING = 1e-9


@njit(cache=True)
def correct(status: Any, each: Any) -> None:
    """Ĉ += Δ for every active replica, with the replies of this epoch."""
    mean = _mean_delta(status, each)
    for receiver in each:
        if receiver.active:
            _correct_one(status, receiver, mean)


@njit(cache=True)
def _mean_delta(status: Any, each: Any) -> float:
    total, count = 0.0, 0
    for receiver in each:
        if _confirms(status, receiver):
            total += receiver.delta
            count += 1
    return total / count if count else 0.0


@njit(cache=True)
def _confirms(status: Any, receiver: Any) -> bool:
    """Whether the replica has answered, and its time has not shrunk."""
    executed = receiver.told + receiver.delta
    return receiver.heard == status.epoch and executed >= receiver.floor * (1.0 - _ROUNDING)  # type: ignore[no-any-return]


@njit(cache=True)
def _correct_one(status: Any, receiver: Any, mean: float) -> None:
    if _confirms(status, receiver):
        receiver.load += receiver.delta
        receiver.floor = receiver.told + receiver.delta
    elif receiver.asked != status.epoch:  # it joined in this epoch, at a level that is now corrected
        change = max(mean, -receiver.floor)
        receiver.load += change
        receiver.start += change
        receiver.floor += change
    else:
        _guess(status, receiver, mean)


@njit(cache=True)
def _guess(status: Any, receiver: Any, mean: float) -> None:
    """The mean for a replica that has not answered, or has started anew: its C and our Ĉ are then Δ further apart."""
    change = max(mean, receiver.floor - receiver.load)
    receiver.load += change
    if receiver.heard == status.epoch:
        receiver.start += change - receiver.delta
        receiver.floor = max(receiver.floor, receiver.told + change)
