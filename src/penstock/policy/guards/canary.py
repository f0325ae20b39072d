"""A new policy that decides in the shadow at first, takes over when it is better, and is taken back if it is not."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, fields, replace

from penstock.common.checks import positive, share
from penstock.errors import InputError
from penstock.metrics.snapshot import Snapshot
from penstock.policy.base import Policy
from penstock.policy.guards.shadow import TARGET_MS, Shadow
from penstock.policy.parts.imagined import Came

LATE = 0.01
MINUTES = 10.0
ROOM = 0.6  # of the promise may be late, whatever the other does
_NEARLY = 0.98  # times the other's cost: not worth a change
_CLEARLY = 0.9  # times the other's lateness: it is worth what it costs
_BUCKETS = 60  # that a window is kept in


@dataclass(slots=True)
class Account:
    """What a time came to: of who decided and of the other, by the fluid, late events and replica-seconds."""

    seconds: float = 0.0
    events: float = 0.0
    decides_late: float = 0.0
    decides_cost: float = 0.0
    other_late: float = 0.0
    other_cost: float = 0.0
    seen_late: float = 0.0  # events, as they were counted

    def add(self, other: Account, times: int = 1) -> None:
        """Add another time; −1 times, take it away."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + times * getattr(other, one.name))

    def decides(self, waiting: float) -> tuple[float, float]:
        """Late share and cost of who decided; what has to wait for too long will be late."""
        return max(0.0, self.decides_late + waiting) / max(self.events, 1.0), self.decides_cost

    def other(self, waiting: float) -> tuple[float, float]:
        """Late share and cost of the other."""
        return max(0.0, self.other_late + waiting) / max(self.events, 1.0), self.other_cost


def better(one: tuple[float, float], other: tuple[float, float], late: float) -> bool:
    """Whether a late share and a cost are better than others: cheaper by 2 % and no later, or less late by a tenth.

    Up to 0.6 of the promise, later is not worse; and where both keep to that, less late is not better.

    >>> better((0.0, 90.0), (0.0, 100.0), 0.01), better((0.02, 50.0), (0.0, 100.0), 0.01)
    (True, False)
    >>> better((0.002, 120.0), (0.05, 100.0), 0.01), better((0.0, 120.0), (0.005, 100.0), 0.01)
    (True, False)
    """
    mine, others = (max(0.0, share - ROOM * late) for share, _ in (one, other))
    return mine < _CLEARLY * others or (mine <= others and one[1] < _NEARLY * other[1])


class Canary(Shadow):
    """Lets `canary` decide in the place of `policy` once it was better for so many minutes; takes it back by itself.

    Both are played on what came, as fluids. Who decides is judged by what was seen, too: the canary is taken back as
    soon as more events are late, beyond what the policy before would have had, than the promise allows for its minutes;
    and after these when the other would have been better. Once it was taken back it stays in the shadow.
    """

    def __init__(
        self,
        policy: Policy,
        canary: Policy,
        *,
        minutes: float = MINUTES,
        late: float = LATE,
        target_ms: float = TARGET_MS,
        names: tuple[str, str] | None = None,
    ) -> None:
        self.minutes = positive("guard 'canary'", "minutes", minutes)
        self.late = share("guard 'canary'", "late", late)
        self.in_charge = False  # whether the canary is
        self.taken_back = False
        self._window: deque[Account] = deque()
        self._over = Account()  # all of the window
        self._budget = 0.0  # events that may be late in its minutes, once it is in charge
        self._inherited = 0  # events that waited when it took over: not its doing
        super().__init__(policy, canary, target_ms=target_ms, names=names)

    @property
    def _outlook(self) -> str:
        return f", and takes over if it is better for {self.minutes:g} min"

    def _judge(
        self, snapshot: Snapshot, came: Came, decides: tuple[float, float], other: tuple[float, float]
    ) -> str | None:
        """Take over, or take back, where it is time."""
        seen = snapshot.latency.late if snapshot.latency.late is not None else decides[0]
        self._add(Account(came.seconds, came.events, *decides, *other, seen))
        over = self._over
        full = over.seconds >= 60 * self.minutes * 0.99
        if not self.in_charge:
            allowed = full and came.events > 0 and not self.taken_back
            why = self._other_is_better(over, came) if allowed else None
            if why is None:
                return None
            self._budget, self._inherited = self.late * over.events, snapshot.backlog
            return self._change(snapshot, f"took over: {why}")
        why = self._too_late(over) or (self._other_is_better(over, came) if full else None)
        if why is None:
            return None
        self.taken_back = True
        return self._change(snapshot, f"took back: {why}")

    def _failed(self, snapshot: Snapshot, error: Exception) -> str | None:
        """A canary that fails when it decides is taken back at once."""
        if not self.in_charge:
            return None
        self.taken_back = True
        why = f"took back: {self.names[0]} failed: {type(error).__name__}: {error}"
        return self._change(snapshot, why)

    def _too_late(self, over: Account) -> str | None:
        """Why it is to go, if more is late than was promised for its minutes."""
        caused = over.seen_late - over.other_late - self._inherited
        allowed = max(self._budget, self.late * over.events)
        if caused <= allowed or caused < 1:
            return None
        promised = f"{_percent(self.late)} over {self.target_ms:g} ms, {allowed:.0f} events in {self.minutes:g} min"
        beside = f"{self.names[1]} would have had {over.other_late:.0f}"
        return (
            f"{self.names[0]} was late with {over.seen_late:.0f} events in {_length(over.seconds)}, "
            f"where {beside}; promised: {promised}"
        )

    def _other_is_better(self, over: Account, came: Came) -> str | None:
        """How much so, if it is."""
        other, decides = over.other(self._other.overdue(came)), over.decides(self._decides.overdue(came))
        return _beside(self.names[::-1], other, decides, over) if better(other, decides, self.late) else None

    def _change(self, snapshot: Snapshot, why: str) -> str:
        """Let the other decide from now on; both begin with what really waits."""
        self.policy, self.shadow = self.shadow, self.policy
        self.names = self.names[1], self.names[0]
        self._decides, self._other = self._other, self._decides
        for one in (self._decides, self._other):
            one.begin(snapshot)
        self._window.clear()
        self._over = Account()
        self.in_charge = not self.in_charge
        return why

    def _add(self, account: Account) -> None:
        """Into the window, which is kept in few parts however short intervals are."""
        if self._window and self._window[-1].seconds < self.minutes * 60 / _BUCKETS:
            self._window[-1].add(account)
        else:
            self._window.append(replace(account))
        self._over.add(account)
        while self._over.seconds - self._window[0].seconds >= 60 * self.minutes:
            self._over.add(self._window.popleft(), -1)


def parse_canary(text: str) -> tuple[str, float]:
    """A policy, with the minutes for which it is to be better among its options.

    >>> parse_canary("psps"), parse_canary("static:1,minutes=5"), parse_canary("psps:minutes=2.5,use_forecast")
    (('psps', 10.0), ('static:1', 5.0), ('psps:use_forecast', 2.5))
    """
    name, _, rest = text.strip().partition(":")
    options = [part for part in rest.split(",") if part]
    said = [part for part in options if part.partition("=")[0] == "minutes"]
    kept = ",".join(part for part in options if part not in said)
    try:
        minutes = float(said[-1].partition("=")[2]) if said else MINUTES
    except ValueError:
        raise InputError(f"canary: minutes must be a number, as {name}:minutes=5; got {said[-1]!r}") from None
    return (f"{name}:{kept}" if kept else name), positive("canary", "minutes", minutes)


def _beside(names: tuple[str, str], one: tuple[float, float], other: tuple[float, float], over: Account) -> str:
    """How one would have done, beside the other, who decided."""
    saved = 1 - one[1] / other[1] if other[1] else 0.0
    cost = f"{_percent(abs(saved))} {'less' if saved >= 0 else 'more'}"
    return (
        f"over {_length(over.seconds)} {names[0]} would have cost {cost} than {names[1]}, "
        f"with {_percent(one[0])} of the events late; with {names[1]} it is {_percent(other[0])}"
    )


def _length(seconds: float) -> str:
    return f"{seconds / 60:.3g} min" if seconds >= 120 else f"{seconds:.0f} s"


def _percent(part: float) -> str:
    return f"{100 * part:.2g} %" if 1e-6 < part < 0.1 else f"{100 * min(1.0, part):.0f} %"
