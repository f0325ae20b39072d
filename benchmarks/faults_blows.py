"""The faults of the campaign, each carried out from outside the engine, but for the two that only its channel has."""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import psutil
from faults_clock import HOUR_S, Clock
from faults_ends import Ends
from faults_plan import Step
from history_stage import Driver, python_workers

from penstock.infra.standalone import StandaloneCluster

FOUND_WITHIN_S = 90.0
CLOCKS = ("clock_forward", "clock_back")
GROWS_BYTES = 1 << 20
AT_ONCE = 20  # connections with rubbish

_PROCESSES = ("worker", "daemon", "driver", "jvm")  # the last is that of Spark's driver, and locally its executor
ALWAYS = (
    *(f"{what}_{whom}" for what in ("kill", "stop") for whom in _PROCESSES),
    *("kill_machine", "channel_cut", "channel_slow", "channel_rubbish", "poison"),
)
CLUSTERED = ("kill_executor", "kill_spark_worker", "kill_master", "stop_executor", "stop_spark_worker", "stop_master")

PLAIN_TOO = (  # what can befall a plain query, too
    *(one for one in ALWAYS if not one.startswith("channel")),
    *("disk_full", "store_locked", "kill_database", "stop_database", *CLUSTERED),
)


class Stage(Protocol):
    """What faults need to know of the round."""

    driver: Driver
    ends: Ends
    run_folder: Path
    clock: Clock | None
    cluster: StandaloneCluster | None

    def family(self) -> list[psutil.Process]:
        """All processes of the run: the driver's, and the cluster's."""

    def restart_driver(self, alone: bool) -> None:
        """Kill the driver, alone or with all that is its own, and start another on the same folder."""

    def over(self) -> bool:
        """Whether the run has ended."""


class MissedError(Exception):
    """There was nothing to hurt."""


def strike(stage: Stage, step: Step) -> None:
    """Carry out a step, and return when it is over."""
    what, _, whom = step.kind.partition("_")
    if step.kind in STRIKES:
        STRIKES[step.kind](stage, step)
    elif step.kind in stage.ends.kinds:
        stage.ends.hurt(step.kind, step.length_s)
    else:
        victim = _found(stage, whom, random.Random(step.seed))
        if what == "kill":
            victim.kill()
            _replace(stage, whom, step.length_s)
        else:
            with suppress(psutil.NoSuchProcess):
                victim.suspend()
                time.sleep(step.length_s)
                victim.resume()


def _replace(stage: Stage, whom: str, after_s: float) -> None:
    """Masters and Workers are started again, as the service manager of a machine does."""
    if stage.cluster is None or whom not in ("master", "spark_worker"):
        return
    time.sleep(after_s)
    if whom == "master":
        stage.cluster.launch()
    else:
        stage.cluster.list()
        stage.cluster.add()


def _found(stage: Stage, whom: str, draw: random.Random) -> psutil.Process:
    """One of the processes of that kind, as soon as there is one."""
    deadline = time.monotonic() + FOUND_WITHIN_S
    while time.monotonic() < deadline and not stage.over():
        with suppress(psutil.Error):
            if found := VICTIMS[whom](stage):
                return draw.choice(found)
        time.sleep(0.05)
    raise MissedError(f"there was no {whom} to hurt")


def _jvms(stage: Stage) -> list[psutil.Process]:
    return [one for one in stage.driver.family() if one.name() == "java"]


def _executors(stage: Stage) -> list[psutil.Process]:
    workers = _spark_workers(stage)
    return [one for worker in workers for one in worker.children() if one.name() == "java"]


def _spark_workers(stage: Stage) -> list[psutil.Process]:
    processes = stage.cluster.processes() if stage.cluster else {}
    return [psutil.Process(pid) for name, (pid, _) in processes.items() if name != "master" and psutil.pid_exists(pid)]


def _masters(stage: Stage) -> list[psutil.Process]:
    processes = stage.cluster.processes() if stage.cluster else {}
    return [psutil.Process(pid) for name, (pid, _) in processes.items() if name == "master" and psutil.pid_exists(pid)]


VICTIMS: Mapping[str, Callable[[Stage], list[psutil.Process]]] = {
    "worker": lambda stage: python_workers(stage.family())[1],
    "daemon": lambda stage: python_workers(stage.family())[0],
    "driver": lambda stage: [psutil.Process(stage.driver.process.pid)],
    "jvm": _jvms,
    "executor": _executors,
    "spark_worker": _spark_workers,
    "master": _masters,
}


def _tell(stage: Stage, line: str) -> None:
    """To the driver, as soon as there is one that listens."""
    deadline = time.monotonic() + FOUND_WITHIN_S
    while time.monotonic() < deadline and not stage.over():
        driver = stage.driver
        if driver.said("began") and driver.process.poll() is None and driver.tell(line):
            return
        time.sleep(0.05)
    raise MissedError("there was no driver to tell")


def _cut(stage: Stage, step: Step) -> None:
    _tell(stage, f"cut {step.length_s}")
    time.sleep(step.length_s)


def _slow(stage: Stage, step: Step) -> None:
    _tell(stage, f"slow {step.length_s}")
    time.sleep(step.length_s)


def _rubbish(stage: Stage, step: Step) -> None:
    """Random bytes, and frames that promise much, to all ports on which the driver's process listens."""
    draw, until = random.Random(step.seed), time.monotonic() + step.length_s
    driver = _found(stage, "driver", draw)
    ports = [one.laddr.port for one in driver.net_connections("tcp") if one.status == psutil.CONN_LISTEN]
    if not ports:
        raise MissedError("the driver does not listen")
    while time.monotonic() < until:
        opened = []
        for number in range(AT_ONCE):
            with suppress(OSError):
                one = socket.create_connection(("127.0.0.1", draw.choice(ports)), 1.0)
                opened.append(one)
                one.sendall(draw.choice((draw.randbytes(100), b"\xff\xff\xff\x7f", b"\0\0\0\x02", bytes(number))))
        time.sleep(0.3)
        for one in opened:
            one.close()


def _fill_disk(stage: Stage, step: Step) -> None:
    """Fill the file system of the run's folder, and keep it full."""
    ballast, until = stage.run_folder / "ballast", time.monotonic() + step.length_s
    handle = os.open(ballast, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    try:
        while time.monotonic() < until:
            for size in (GROWS_BYTES, 4096, 1):
                with suppress(OSError):  # full
                    while os.write(handle, bytes(size)) == size:
                        continue
            time.sleep(0.05)
    finally:
        os.close(handle)
        ballast.unlink()


def _clock(stage: Stage, step: Step) -> None:
    """All clocks of the run jump by an hour, and back again."""
    if stage.clock is None:
        raise MissedError("the clock cannot be set")
    stage.clock.jump(HOUR_S if step.kind == "clock_forward" else -HOUR_S)
    time.sleep(step.length_s)
    stage.clock.jump(0)


STRIKES: Mapping[str, Callable[[Stage, Step], None]] = {
    "replicas": lambda stage, step: _tell(stage, f"replicas {step.seed}"),
    "layout": lambda stage, step: _tell(stage, f"layout {step.seed}"),
    "kill_driver": lambda stage, _: stage.restart_driver(alone=True),  # what it has started lives on for a while
    "kill_machine": lambda stage, _: stage.restart_driver(alone=False),
    "channel_cut": _cut,
    "channel_slow": _slow,
    "channel_rubbish": _rubbish,
    "disk_full": _fill_disk,
    **dict.fromkeys(CLOCKS, _clock),
    "poison": lambda _stage, _step: None,  # the events themselves are poisoned
}
