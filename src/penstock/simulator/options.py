"""How a simulation is to be run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.common.checks import is_whole
from penstock.common.names import one_of
from penstock.errors import InputError

ACTUATIONS = ("pool", "restart", "restart-lossy")
STATE_BYTES = 60.0  # of one key, where nothing is said: a word with a dict of three numbers, encoded


@dataclass(frozen=True, kw_only=True)
class SimulationOptions:
    """Everything about a simulation that is not the topology, its input or its policy.

    `actuation` says what a change of replicas costs. `pool`: nothing is restarted; a new replica works after
    `activation_delay_s`. `restart`: everything stands still for `restart_s`, then what had not finished is shared out
    anew. `restart-lossy`: the same, and what had not finished is lost.
    """

    td_s: float = 5.0
    t_out_s: float | None = None  # drop events older than this, end to end
    q_size: int | None = None  # drop events that find this many waiting at their operator
    hop_s: float = 0.0025  # from one operator to the next
    overhead_s: Mapping[str, float] = field(default_factory=dict)  # added to every event's time, by operator
    activation_delay_s: float = 0.05
    actuation: str = "pool"
    restart_s: float = 30.0
    exponential: bool = False  # service times are drawn around their mean
    target_s: float = 2.0  # an event that takes longer is late
    first_step_s: float = 0.0  # when the control loop starts to look
    seed: int = 0
    state_bytes: Mapping[str, float] = field(default_factory=dict)  # of one key, by operator that keeps state
    move_bandwidth: float = 10e6  # bytes per second at which state is written, brought and read
    move_latency_s: float = 0.1  # until a replica that gains state hears that it is there

    def __post_init__(self) -> None:
        one_of("actuation", self.actuation, ACTUATIONS)
        for name, least in (("hop_s", 0.0), ("activation_delay_s", 0.0), ("restart_s", 0.0), ("first_step_s", 0.0)):
            _check(name, getattr(self, name), least, open_=False)
        for name in ("td_s", "target_s", "t_out_s"):
            if getattr(self, name) is not None:
                _check(name, getattr(self, name), 0.0, open_=True)
        if self.q_size is not None and not is_whole(self.q_size, 1):
            raise InputError(f"q_size must be at least 1; got {self.q_size!r}")
        for operator, time_s in self.overhead_s.items():
            _check(f"overhead_s of '{operator}'", time_s, 0.0, open_=False)
        for operator, size in self.state_bytes.items():
            _check(f"state_bytes of '{operator}'", size, 0.0, open_=False)
        _check("move_latency_s", self.move_latency_s, 0.0, open_=False)
        if self.move_bandwidth != math.inf:  # as fast as one likes
            _check("move_bandwidth", self.move_bandwidth, 0.0, open_=True)

    def check_state(self, keeping: Sequence[str]) -> None:
        """Bytes of state must be those of operators that keep some."""
        if wrong := [name for name in self.state_bytes if name not in keeping]:
            known = ", ".join(keeping) or "none"
            raise InputError(f"state_bytes: must name operators that keep state ({known}); got {wrong[0]!r}")


def _check(name: str, value: float, least: float, *, open_: bool) -> None:
    if not (math.isfinite(value) and (value > least if open_ else value >= least)):
        raise InputError(f"{name} must be {'above' if open_ else 'at least'} {least:g}; got {value!r}")
