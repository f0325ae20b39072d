"""The settings of the `flink` policy: Flink's own defaults, and short ones for fast changes."""

from __future__ import annotations

from dataclasses import dataclass, fields

from penstock.common.checks import not_negative, positive, share
from penstock.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class FlinkSettings:
    """What the autoscaler aims for and how long it waits; the defaults are Flink's.

    It aims for `target_utilisation` and acts when an operator's utilisation would be outside `u_min` to `u_max`. A
    backlog is to be gone after `catch_up_s`, with what a restart of `restart_s` adds to it. Averages are over
    `window_s`; after a change it waits `stabilisation_s`; a scale-in waits `down_interval_s`.
    """

    target_utilisation: float = 0.7
    u_max: float = 1.0
    u_min: float = 0.4
    catch_up_s: float = 1800.0
    restart_s: float = 300.0
    window_s: float = 900.0
    stabilisation_s: float = 300.0
    down_interval_s: float = 3600.0

    def __post_init__(self) -> None:
        for name in ("target_utilisation", "u_max", "u_min"):
            share("policy 'flink'", name, getattr(self, name))
        if not self.u_min <= self.target_utilisation <= self.u_max:
            bounds = f"from u_min {self.u_min:g} to u_max {self.u_max:g}"
            raise InputError(f"policy 'flink': target_utilisation must be {bounds}; got {self.target_utilisation:g}")
        for field in fields(self):
            if field.name.endswith("_s"):
                check = positive if field.name == "window_s" else not_negative
                check("policy 'flink'", field.name, getattr(self, field.name))

    def capacity(self, target: float, backlog: float, utilisation: float) -> float:
        """Events per second that it takes to run at a utilisation, catch up with the backlog and bear a restart.

            capacity(u) = backlog / catch_up + target · restart / catch_up + target / u

        Without a time to catch up the first two terms are 0.

        >>> FlinkSettings(catch_up_s=100, restart_s=10).capacity(target=70, backlog=200, utilisation=0.7)
        109.0
        """
        at_utilisation = target / utilisation
        if self.catch_up_s == 0:
            return at_utilisation
        return (backlog + target * self.restart_s) / self.catch_up_s + at_utilisation


SETTINGS = {
    "default": FlinkSettings(),
    "short": FlinkSettings(window_s=60, stabilisation_s=10, down_interval_s=300, catch_up_s=120, restart_s=30),
}
