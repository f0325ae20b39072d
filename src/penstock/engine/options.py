"""How a run is to be run."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

from penstock.common.checks import is_whole
from penstock.engine.protocol.ports import Ports, parse_ports
from penstock.errors import InputError

MODES = ("realtime", "microbatch")
LEAST_QUEUE_BYTES = 1 << 20  # a bundle has up to so much
LEAST_SILENT_S = 5.0  # who has nothing to say says so every two seconds


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Everything about a run that is not the topology, its sources or its replicas."""

    mode: str = "realtime"
    t_out_s: float | None = None  # drop events older than this, end to end
    q_size: int | None = None  # drop events that find this many waiting at their operator
    encrypt: bool | None = None  # TLS between driver and replicas, and from replica to replica; None: off loopback
    ports: str | None = None  # for all that the run listens on, as 40000-40100; None: any
    queue_bytes: int = 64 << 20  # what may wait at a replica; senders stand still when it is full
    checkpoint_every_s: float = 10.0  # what is done again after a crash, at most, and as long as a checkpoint takes
    checkpoint_timeout_s: float = 120.0  # a checkpoint that takes longer is given up; the next one covers it, too
    report_every_s: float = 0.5  # how often replicas report
    silent_s: float = 10.0  # a process that says nothing for so long counts as lost: the attempt ends, and it with it
    source_slots: int = 1  # partitions each source is spread over
    standby: bool = False  # the processes of the next attempt wait beside those at work, and go on at once
    whole_pool: bool = True  # catches up after a fault, then those that were active go on
    retries: int = 5  # restarts in a row without progress, but for faults of the environment: those have no limit
    retry_window_s: float = 600.0  # a query that has lived this long has made progress, also without a checkpoint
    start_timeout_s: float = 300.0
    slots_within_s: float = 60.0  # how long the slots of a cluster are waited for
    handover_timeout_s: float = 60.0  # state whose move does not get on for so long stays; the query is started again
    executors: int = 1  # of a cluster, to wait for before replicas are spread over them
    folder: Path | None = None  # checkpoints, logs; a temporary one if none is given
    checkpoints: str | None = None  # another place for checkpoints, state and what waits for them: s3://bucket/run, …
    spark: dict[str, str] = field(default_factory=dict, repr=False)  # further Spark settings; some are secret

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InputError(f"mode must be one of {', '.join(MODES)}; got {self.mode!r}")
        if self.standby and not self.realtime:
            raise InputError("standby goes with mode 'realtime'; in micro-batch mode every batch has its own processes")
        if self.encrypt not in (None, True, False):
            raise InputError(f"encrypt must be True, False or None; got {self.encrypt!r}")
        if self.ports is not None:
            parse_ports(self.ports)
        times = ("t_out_s", "report_every_s", "start_timeout_s", "slots_within_s", "handover_timeout_s")
        for name in (*times, "checkpoint_timeout_s"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise InputError(f"{name} must be above 0; got {value!r}")
        if not (math.isfinite(self.checkpoint_every_s) and self.checkpoint_every_s >= 1):
            raise InputError(f"checkpoint_every_s must be at least 1; got {self.checkpoint_every_s!r}")
        if not (math.isfinite(self.silent_s) and self.silent_s >= LEAST_SILENT_S):
            raise InputError(f"silent_s must be at least {LEAST_SILENT_S:g}; got {self.silent_s!r}")
        whole = (
            ("q_size", 1),
            ("queue_bytes", LEAST_QUEUE_BYTES),
            ("source_slots", 1),
            ("executors", 1),
            ("retries", 0),
        )
        for name, least in whole:
            value = getattr(self, name)
            if value is not None and not is_whole(value, least):
                raise InputError(f"{name} must be whole and at least {least}; got {value!r}")

    @property
    def port_range(self) -> Ports | None:
        """The ports that the run may listen on, if not any."""
        return None if self.ports is None else parse_ports(self.ports)

    @property
    def realtime(self) -> bool:
        """Whether the mode is real-time mode."""
        return self.mode == "realtime"
