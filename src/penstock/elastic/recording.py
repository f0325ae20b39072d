"""What is kept of a run: for its summary in memory; all of it in the store, and for who reads `/metrics`."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from penstock.control.steering import Helm
from penstock.elastic.summary import Played, draining_s
from penstock.engine.run import Run
from penstock.metrics.counters import CheckpointStatus, RunCounters
from penstock.metrics.recorder import Recorder
from penstock.metrics.rows import CheckpointRow, FaultRow, IntervalRecord
from penstock.metrics.scores import Scored
from penstock.metrics.store import Store
from penstock.policy.base import Decision

if TYPE_CHECKING:
    from penstock.ui.exposition import RunMetrics

LAST_CHANGES = 1000  # that are kept in memory; the store has them all


class Recording:
    """Takes every interval from the loop; what is in the store is there under the run's `name`."""

    def __init__(self, name: str, run: Run, helm: Helm, scored: Scored, store: Store | None) -> None:
        self._name = name
        self._run = run
        self._helm = helm
        self._scored, self._policy = scored, scored.policy  # as it was started
        self._store = store
        self._recorder = None if store is None else Recorder(partial(store.write, name))
        self._faults = 0  # the last one recorded
        self.fresh = FreshCounters(run)
        self.played = Played(helm.planning.rules.td_s)
        self.decisions: deque[Decision] = deque(maxlen=LAST_CHANGES)  # that changed replicas, the last of them
        self.metrics: RunMetrics | None = None
        self.ended = False

    def record(self, record: IntervalRecord) -> None:
        """The loop hands over an interval."""
        self.played.td_s = self._helm.planning.rules.td_s
        self.played.add(record.interval, record.decisions, self.fresh.draining_s)
        self._scored.policy = self._helm.steering.policy or self._policy
        checkpoints = checkpoint_rows(record.interval.number, self._run.checkpoint_status())
        record = self._scored.after(replace(record, faults=self._new_faults(), checkpoints=checkpoints))
        made = (Decision(one.operator, one.before, one.after, one.reason, one.expected) for one in record.decisions)
        self.decisions.extend(one for one in made if one.changed)
        if self.metrics is not None:
            self.metrics.record(record)
        if self._recorder is not None:
            self._recorder.record(record)

    def end(self) -> None:
        """Have the store know all of the run, and that it has ended."""
        self.ended = True
        if self._recorder is not None:
            self._recorder.close()
        if self._store is not None:
            self._store.write_faults(self._name, self._new_faults(ended=True))
            self._store.finish_run(self._name, datetime.now(UTC).isoformat())

    def _new_faults(self, ended: bool = False) -> tuple[FaultRow, ...]:
        """The faults that are over, or ended with the run, and have not been recorded yet."""
        new = [one for one in self._run.faults() if one.number > self._faults and (ended or one.seconds is not None)]
        self._faults = max((one.number for one in new), default=self._faults)
        return tuple(FaultRow(**asdict(one)) for one in new)


def checkpoint_rows(number: int, status: CheckpointStatus) -> tuple[CheckpointRow, ...]:
    """How checkpoints go, for the store; nothing where there are none.

    >>> checkpoint_rows(7, CheckpointStatus())
    ()
    """
    if status.every_s is None:
        return ()
    made = status.committed > 0
    row = CheckpointRow(
        number=number,
        checkpoint=status.number if made else None,
        age_s=status.age_s,
        took_s=status.took_s if made else None,
        size_bytes=status.size_bytes if made else None,
        committed=status.committed,
        given_up=status.given_up,
        every_s=status.every_s,
    )
    return (row,)


class FreshCounters:
    """The run's counters, asked for anew: all replicas report at the end of the interval, not half a second before."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._last: RunCounters | None = None
        self.draining_s = 0.0  # between the last two looks

    def counters(self) -> RunCounters:
        """The counters now."""
        now = self._run.fresh_counters()
        self.draining_s = 0.0 if self._last is None else draining_s(self._last, now)
        self._last = now
        return now
