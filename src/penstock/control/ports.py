"""What the loop needs from outside, by role; the engine, the simulator and the tests' fakes provide it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol, runtime_checkable

from penstock.forecast.base import Forecast
from penstock.metrics.counters import RunCounters
from penstock.metrics.interval import IntervalRules
from penstock.metrics.rows import IntervalRecord, LevelRows
from penstock.metrics.snapshot import Snapshot
from penstock.metrics.utilisation import Utilisation


class Clock(Protocol):
    """Time as the loop sees it, in seconds; one that never goes back is best, but the loop bears any."""

    def now(self) -> float:
        """The time."""

    def sleep_until(self, time_s: float) -> None:
        """Return at that time, or earlier when there is a reason to look around (the run stops)."""


@runtime_checkable
class Wakes(Protocol):
    """A clock whose sleep somebody else may end."""

    def wake(self) -> None:
        """Let who sleeps go on, or who will sleep next; from any thread."""


class Counted(Protocol):
    """Something that counts: a run on Spark, a simulation."""

    def counters(self) -> RunCounters:
        """The counters now, stamped by the loop's clock; operators in topological order."""


class Monitors(Protocol):
    """Something that sees the interval that just ended: `control.monitor.Monitor`, or one of a query's progress."""

    @property
    def rules(self) -> IntervalRules:
        """How an interval should look."""

    def collect(self, now_s: float, cut: bool = False) -> Snapshot | None:
        """The interval since the last look, which may have been cut short on purpose; None where there is none yet."""


class Analyzes(Protocol):
    """Something that forecasts: `control.analyze.Analyzer`, or what is put around it."""

    def analyze(self, snapshot: Snapshot) -> Forecast:
        """Learn from the snapshot, then forecast."""


class Actuator(Protocol):
    """Something that can activate and deactivate replicas, at once and without loss."""

    def set_replicas(self, operator: str, replicas: tuple[int, ...]) -> None:
        """From now on exactly these replicas of the operator get events."""

    def publish_utilisation(self, utilisation: Mapping[str, Utilisation]) -> None:
        """Tell all senders how used the replicas are, by operator; once an interval."""


@runtime_checkable
class Balances(Protocol):
    """An actuator that says for which operators anybody looks at how used replicas are: those of load balancing."""

    @property
    def balanced(self) -> Collection[str]:
        """Their names."""


class Records(Protocol):
    """Something that keeps what happened, such as `metrics.recorder.Recorder`."""

    def record(self, record: IntervalRecord) -> None:
        """Keep one interval."""


class Paused(Protocol):
    """A time in which no source could send, such as `engine.cluster.Pause`."""

    @property
    def time_s(self) -> float:
        """When it ended, by the loop's clock."""

    @property
    def why(self) -> str:
        """What changed."""

    @property
    def seconds(self) -> float:
        """How long it took."""


class Levels(Protocol):
    """What a run on workers shows of them, such as `managers.levels_view.LevelsView`."""

    def look(self, number: int, time_s: float) -> LevelRows:
        """The workers at the end of this interval, and what is new since the last look."""
