"""Jumps of what enters: slots of sources notice them, whoever decides about replicas is told at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.engine.protocol.messages import Reports

Told = Callable[[Mapping[str, float]], None]


class JumpListeners:
    """Who is told of jumps: with the rate since, per second, by source, as if all slots saw what the first did."""

    def __init__(self, slots: Callable[[str], int]) -> None:
        self._slots = slots  # of a source
        self._told: list[Told] = []

    def subscribe(self, told: Told) -> None:
        """Call this at every jump, in the thread of the control channel."""
        self._told.append(told)

    def hear(self, reports: Reports) -> None:
        """Pass on what slots say."""
        jump = {one.operator: one.jump * self._slots(one.operator) for one in reports.reports if one.jump > 0}
        if jump:
            for told in self._told:
                told(jump)
