"""What was seen and wished for lately: the sum of some intervals, and the largest wish."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.metrics.snapshot import OperatorLoad, Snapshot


class Largest:
    """The largest of the values of the last `length_s` seconds.

    It keeps only values that may still become the largest, so never more than there are different ones. A clock that
    goes back does not keep a value longer than it was meant to be.

    >>> wishes = Largest(60)
    >>> wishes.add(0, 5), wishes.add(30, 2), wishes.add(59, 3), wishes.add(60, 1)
    (5, 5, 5, 3)
    """

    def __init__(self, length_s: float) -> None:
        self.length_s = length_s
        self._kept: list[tuple[float, int]] = []  # later and smaller from place to place

    def add(self, time_s: float, value: int) -> int:
        """Take in a value; the largest now."""
        recent = [(min(at_s, time_s), one) for at_s, one in self._kept if time_s - at_s < self.length_s and one > value]
        self._kept = [*recent, (time_s, value)]
        return self._kept[0][1]


def merged(snapshots: Sequence[Snapshot]) -> Snapshot:
    """Intervals as one: counts added up, shares of time over the whole length, the rest as the last one has it.

    >>> clean = OperatorLoad(name="clean", received_by={"in": 40}, processed=30, backlog=10, active=(0,), pool=4,
    ...                      busy_share={0: 0.6})
    >>> one = Snapshot(time_s=10, interval_s=10, td_s=10, source_input={"in": 40}, operators={"clean": clean})
    >>> two = merged([one, replace(one, time_s=20)])
    >>> two.interval_s, two.source_input, two.operators["clean"].processed, two.operators["clean"].busy_share
    (20, {'in': 80}, 60, {0: 0.6})
    """
    last = snapshots[-1]
    length_s = sum(one.interval_s for one in snapshots)
    entered = {source: sum(one.source_input.get(source, 0) for one in snapshots) for source in last.source_input}
    operators = {name: _merged_load(load, snapshots, length_s) for name, load in last.operators.items()}
    return replace(last, interval_s=length_s, source_input=entered, operators=operators)


def _merged_load(last: OperatorLoad, snapshots: Sequence[Snapshot], length_s: float) -> OperatorLoad:
    received = dict.fromkeys(last.received_by, 0)
    busy_s = dict.fromkeys(last.busy_share, 0.0)
    processed, cpu_s = 0, 0.0
    for one in snapshots:
        load = one.operators.get(last.name)
        if load is None:
            continue
        processed += load.processed
        cpu_s += load.cpu_share * one.interval_s
        for sender, count in load.received_by.items():
            received[sender] = received.get(sender, 0) + count
        for replica, share in load.busy_share.items():
            if share:  # of a wide pool most do nothing
                busy_s[replica] = busy_s.get(replica, 0.0) + share * one.interval_s
    busy_share = {replica: spent_s / length_s for replica, spent_s in busy_s.items()} if length_s > 0 else {}
    cpu_share = cpu_s / length_s if length_s > 0 else 0.0
    return replace(last, received_by=received, processed=processed, busy_share=busy_share, cpu_share=cpu_share)
