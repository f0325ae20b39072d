"""One round of the fault campaign: a run that is hurt as the plan says, looked at from outside, and judged."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import psutil
from faults_blows import CLOCKS, MissedError, strike
from faults_checker import FAULTS, Verdict, judge
from faults_clock import Clock
from faults_ends import (
    Ends,
    Fed,
    KafkaEnds,
    PlainPostgresEnds,
    PlainSqliteEnds,
    PostgresEnds,
    SqliteEnds,
    as_numbers,
    as_results,
)
from faults_plan import MOVES, Step, payloads, wanted
from faults_scenarios import Setup
from faults_watch import Watch, slopes_mb_per_hour, stood_still_s
from history_scenarios import queries
from history_stage import Driver

from penstock.infra.cluster_workers import await_workers, spark_settings
from penstock.infra.standalone import StandaloneCluster, StandaloneOptions

SCENARIOS = Path(__file__).with_name("faults_scenarios.py")
PLAIN = Path(__file__).with_name("faults_plain.py")
DISK = "64m"  # of the run's folder, where it can be a file system of its own
BEGIN_WITHIN_S = 180.0
END_WITHIN_S = 300.0  # after the last fault and the last event
LOOK_S = 0.05
SPARK_WORKERS = 3


class Struck(msgspec.Struct, kw_only=True):
    """A fault that was carried out, and how long no result came, if it was this one that began it."""

    kind: str
    at_s: float
    length_s: float
    missed: str = ""
    over_s: float = 0.0
    stood_still_s: float | None = None  # amid what another one has begun


class RoundResult(msgspec.Struct, kw_only=True):
    """What came of a round."""

    seed: int
    ends: str
    events: int
    faults: list[Struck]
    verdict: dict[str, Any]
    stuck: str = ""  # why it did not end by itself
    unasked: list[str] = []  # how drivers ended that nobody had killed
    refused: list[str] = []
    drivers: int = 0
    took_s: float = 0.0
    left_behind: list[str] = []
    memory_mb_per_hour: dict[str, float] = {}
    peak_mb: dict[str, float] = {}

    @property
    def good(self) -> bool:
        """Whether it ended, as one history, was never down for good, and left nothing behind."""
        return not (self.stuck or self.unasked or self.left_behind or any(self.verdict[name] for name in FAULTS))


class StuckError(Exception):
    """The run does not get on."""


class Scene:
    """A run, its driver and what it stands on; `faults_blows.Stage`."""

    def __init__(
        self, folder: Path, ends: Ends, rate: float, on: tuple[StandaloneCluster | None, Clock | None], standby: bool
    ) -> None:
        self.folder, self.ends = folder, ends
        self.cluster, self.clock = cluster, clock = on
        self._environment = {**os.environ, **clock.environment} if clock is not None else None
        self.run_folder = folder / "run"
        self.run_folder.mkdir(exist_ok=True)
        self.log = folder / "driver.log"
        spark = spark_settings(cluster) if cluster is not None else {}
        setup = Setup(
            folder=str(self.run_folder),
            events=str(folder / "events.jsonl"),
            rate=rate,
            source=ends.source,
            sinks=ends.sinks,
            level=ends.level,
            spark=spark,
            executors=SPARK_WORKERS if cluster is not None else 1,
            standby=standby and cluster is None,  # its workers have slots for two shifts, and are killed one by one
        )
        (folder / "setup.json").write_bytes(msgspec.json.encode(setup))
        self._changing = threading.RLock()
        self.drivers, self.unasked = 0, list[str]()
        self.struck: list[Struck] = []
        self.driver = self._start()

    def _start(self) -> Driver:
        self.drivers += 1
        self._started_s = time.time()
        script = PLAIN if isinstance(self.ends, Fed) else SCENARIOS
        return Driver([str(script), str(self.folder / "setup.json")], self.log, self._environment)

    def family(self) -> list[psutil.Process]:
        """All processes of the run: the driver's, and the cluster's."""
        found = self.driver.family()
        for pid in self.cluster_pids():
            if psutil.pid_exists(pid):
                found += [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        return found

    def cluster_pids(self) -> list[int]:
        """Of Master and Workers."""
        return [pid for pid, _ in self.cluster.processes().values()] if self.cluster is not None else []

    def restart_driver(self, alone: bool) -> None:
        """Kill the driver, alone or with all that is its own, and start another on the same folder."""
        with self._changing:
            if self.over():
                raise MissedError("the run has ended")
            self.driver.kill_alone() if alone else self.driver.kill()
            self.driver = self._start()

    def over(self) -> bool:
        """Whether the run has ended."""
        return bool(self.driver.process.poll() is not None and self.driver.said("done"))

    def tend(self) -> None:
        """A driver that has ended is started again, as the service manager of a machine does.

        One whose JVM was killed ends as it should; of any other it is noted what it said last.
        """
        with self._changing:
            if self.driver.process.poll() is None or self.over():
                return
            if not any(one.kind == "kill_jvm" and one.at_s >= self._started_s for one in self.struck):
                said = self.log.read_text(errors="replace")[-2000:].strip().splitlines()
                self.unasked.append(f"{self.driver.process.returncode}: {said[-1] if said else ''}"[:500])
            if len(self.unasked) > 20:
                raise StuckError(f"drivers end again and again: {self.unasked[-1]}")
            self.driver.kill()
            self.driver = self._start()

    def until(self, true: Any, within_s: float, what: str) -> None:
        """Wait, and tend the driver meanwhile."""
        deadline = time.monotonic() + within_s
        while not true():
            if time.monotonic() > deadline:
                raise StuckError(f"{what}: not within {within_s:g} s")
            self.tend()
            time.sleep(LOOK_S)

    def strike(self, step: Step) -> None:
        """Carry out a step in a thread, and note when it was."""
        one = Struck(kind=step.kind, at_s=time.time(), length_s=round(step.length_s, 1))
        with self.log.open("a") as log:  # among what the driver says
            log.write(f"strike {step.kind} at {step.at_s:.1f} s, for {step.length_s:.1f} s\n")
        if step.kind not in MOVES:
            self.struck.append(one)
        try:
            strike(self, step)
        except (MissedError, psutil.Error) as error:
            one.missed = str(error)
        one.over_s = time.time()


def play(scene: Scene, steps: Sequence[Step]) -> None:
    """Hurt the run as planned, and wait for its end."""
    scene.until(lambda: scene.driver.said("began"), BEGIN_WITHIN_S, "the first driver")
    scene.ends.begin()
    epoch_s, blows = time.time(), list[threading.Thread]()
    for step in steps:
        scene.until(lambda step=step: time.time() >= epoch_s + step.at_s, 3600, "a step")
        blows.append(threading.Thread(target=scene.strike, args=(step,), daemon=True))
        blows[-1].start()
    scene.until(lambda: not any(blow.is_alive() for blow in blows), END_WITHIN_S, "the last fault")
    finishing = threading.Thread(target=scene.ends.finish, daemon=True)
    finishing.start()
    scene.until(scene.over, END_WITHIN_S, "the end")


def open_ends(name: str, folder: Path, events: Sequence[Any], rate: float) -> Ends:
    """By name: what is stored where, and a level, as in `sqlite:latest`."""
    kind, _, level = name.partition(":")
    if level == "plain":
        tables = PlainPostgresEnds(folder, level) if kind == "postgresql" else PlainSqliteEnds(folder, level)
        tables.feed_from(folder, events, rate)
        return tables
    if kind == "kafka":
        return KafkaEnds(folder, level or "committed", events, wanted(events), rate)
    return (PostgresEnds if kind == "postgresql" else SqliteEnds)(folder, level or "latest")


def mounted(folder: Path, stack: ExitStack) -> bool:
    """Give the folder a small file system of its own, so that it can be full; whether that could be."""
    folder.mkdir(exist_ok=True)
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)], capture_output=True)
    if made.returncode:
        return False
    stack.callback(subprocess.run, ["umount", "-l", str(folder)], capture_output=True)
    return True


def can_mount() -> bool:
    """Whether disks can be made full here."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        return os.getuid() == 0 and mounted(Path(name) / "probe", stack)


def run_round(name: str, steps: Sequence[Step], rate: float, kept: Path, *, clustered: bool, seed: int) -> RoundResult:
    """Play a round in a folder of its own; of one that is not good the logs are kept."""
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-faults-", ignore_cleanup_errors=True))
        )
        events = payloads(queries(12_000), steps, rate)
        (folder / "events.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, events)))
        if any(step.kind == "disk_full" for step in steps):
            mounted(folder / "run", stack)
        cluster = _open_cluster(folder, stack) if clustered else None
        ends = open_ends(name, folder, events, rate)
        stack.callback(ends.close)
        clock = Clock(folder) if any(step.kind in CLOCKS for step in steps) else None
        scene = Scene(folder, ends, rate, (cluster, clock), standby=seed % 2 == 1)
        watch = Watch(ends.progress, lambda: scene.driver, scene.family)
        began_s, stuck = time.time(), ""
        try:
            play(scene, steps)
        except StuckError as error:
            stuck = str(error)
        finally:
            watch.end()
            if scene.driver.process.poll() is None:
                scene.driver.kill()
        verdict = judge(wanted(events), as_results(ends.results()), as_numbers(ends.letters()))
        if cluster is not None:
            cluster.stop()
        result = made_result(name, scene, watch, verdict, (seed, stuck, time.time() - began_s))
        if not result.good:
            keep(folder, kept)
        return result


def _open_cluster(folder: Path, stack: ExitStack) -> StandaloneCluster:
    recovery = f"-Dspark.deploy.recoveryMode=FILESYSTEM -Dspark.deploy.recoveryDirectory={folder}/recovery"
    os.environ["SPARK_DAEMON_JAVA_OPTS"] = recovery  # a Master that is started again knows its Workers
    cluster = StandaloneCluster(folder / "cluster", StandaloneOptions(cores=16))
    stack.enter_context(cluster)
    await_workers(cluster, SPARK_WORKERS)
    return cluster


def made_result(name: str, scene: Scene, watch: Watch, verdict: Verdict, about: tuple[int, str, float]) -> RoundResult:
    """All that is known of the round."""
    seed, stuck, took_s = about
    struck = sorted(scene.struck, key=lambda one: one.at_s)
    for one, still_s in zip(struck, stood_still_s(watch.came_s, [one.at_s for one in struck]), strict=True):
        one.stood_still_s = still_s
    said = scene.log.read_text(errors="replace").splitlines()
    memory = watch.memory
    return RoundResult(
        seed=seed,
        ends=name,
        events=verdict.events,
        faults=struck,
        verdict={
            **{one: getattr(verdict, one) for one in ("delivered", "dead_lettered", "dropped", *FAULTS)},
            "examples": dict(verdict.examples),
        },
        stuck=stuck,
        unasked=scene.unasked,
        refused=[line for line in said if line.startswith("refused ")],
        drivers=scene.drivers,
        took_s=round(took_s, 1),
        left_behind=watch.left_behind(),
        memory_mb_per_hour=slopes_mb_per_hour(memory),
        peak_mb={
            what: round(max((getattr(one, what) for one in memory), default=0.0))
            for what in ("driver", "jvm", "workers")
        },
    )


def keep(folder: Path, kept: Path) -> None:
    """Have the logs, the records and the setup of a round elsewhere."""
    kept.mkdir(parents=True, exist_ok=True)
    for path in (folder / "driver.log", folder / "setup.json", folder / "results.db", folder / "run"):
        if path.is_dir():
            shutil.copytree(path, kept / path.name, dirs_exist_ok=True, ignore=shutil.ignore_patterns("ballast"))
        elif path.exists():
            shutil.copy(path, kept / path.name)
