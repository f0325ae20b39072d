"""A long run: whether it is at its end as it was at its beginning.

    python benchmarks/soak.py                          # an hour
    python benchmarks/soak.py --minutes 3 --sample-s 15
    python benchmarks/soak.py --resume                 # go on where it was stopped, with the same state

1,000 real DNS queries a second are counted by name and by domain, and every 10 s the replicas of one of the two change,
so that state moves. Once a minute it is looked at: latency since the last look, memory, open files and threads of
driver, JVM and Python workers. Prints one JSON object: medians of the first looks and of the last ones, but for the
first minutes of a driver, how memory grew in the longest life of one, what is missing of what was sent, and what has
`grown` by more than noise; ends with 1 if something is missing or has.
"""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import linear_regression, median
from typing import Annotated, Any

import msgspec
import psutil
import typer
from history_scenarios import by_domain, by_name, parse, queries
from history_stage import python_workers
from rich.console import Console

from penstock import RunOptions, Topology
from penstock.engine.run import Run
from penstock.metrics.counters import RunCounters
from penstock.sources.base import Cursor, Polled, Reader, Slot, Source

POOL = 4
KEYED = ("names", "domains")
EVENTS = 50_000  # different ones
YOUNG_S = 120.0  # memory grows while it starts, and Java compiles
COMPARED = 5  # looks at either end
LATER, LATER_MS = 1.5, 10.0  # latency may be so many times as high, and so much higher: noise
MORE = 1.1  # open files, threads and, by its slope over an hour, memory


class Look(msgspec.Struct, kw_only=True):
    """The run at one moment, and what happened since the last look; mappings are by driver, jvm and workers."""

    driver: int  # its process: another one after a resume
    age_s: float  # of the driver
    p50_ms: float
    p99_ms: float
    events: int
    moves: int  # of key groups
    restarts: int
    memory_mb: dict[str, float]
    files: dict[str, int]
    threads: dict[str, int]


class Steady(Source):
    """Events at a steady rate from the moment on at which it is opened; none are made up for that are late by then."""

    def __init__(self, rate: float, events: Sequence[Any]) -> None:
        self.rate, self.events = rate, events

    def open(self, slot: Slot, cursor: Cursor | None) -> SteadyReader:  # noqa: ARG002 - it has one
        """From the next event on."""
        return SteadyReader(self.rate, self.events, cursor or 0)


class SteadyReader(Reader):
    """Its cursor is the number of the next event."""

    def __init__(self, rate: float, events: Sequence[Any], cursor: int) -> None:
        self._rate, self._events, self._next = rate, events, cursor
        self._first, self._began_s = cursor, time.time()

    def poll(self, most: int, wait_s: float) -> list[Polled]:
        """Those that are due."""
        due_s = self._due_s(self._next)
        time.sleep(max(0.0, min(wait_s, due_s - time.time())))
        due = self._first + int((time.time() - self._began_s) * self._rate)
        numbers = range(self._next, min(due, self._next + most))
        self._next = max(self._next, numbers.stop)
        return [Polled(str(n), self._due_s(n), self._events[n % len(self._events)]) for n in numbers]

    def _due_s(self, number: int) -> float:
        return self._began_s + (number - self._first) / self._rate

    @property
    def cursor(self) -> int:
        """The number of the next one."""
        return self._next

    def lag(self) -> int:
        """Those that are due and not polled."""
        return max(0, self._first + int((time.time() - self._began_s) * self._rate) - self._next)


def end(event: dict[str, Any]) -> None:
    """Where all arrive."""


def topology() -> Topology:
    dns = Topology("soak", pool=POOL)
    parsed = dns.operator("parse", parse, inputs=dns.source("queries"))
    names = dns.operator("names", by_name, inputs=parsed, key="name", key_groups=64)
    domains = dns.operator("domains", by_domain, inputs=names, key="domain", key_groups=64)
    dns.operator("end", end, inputs=domains)
    return dns


def parts() -> dict[str, list[psutil.Process]]:
    """The processes of the run, by what they are."""
    me = psutil.Process()
    family = me.children(recursive=True)
    daemons, workers = python_workers(family)
    return {"driver": [me], "jvm": [one for one in family if _name(one) == "java"], "workers": [*daemons, *workers]}


def _name(process: psutil.Process) -> str:
    try:
        return str(process.name())
    except psutil.Error:
        return ""


def total(processes: Iterable[psutil.Process], number: Callable[[psutil.Process], float]) -> float:
    """The sum over those that are still there."""
    found = 0.0
    for one in processes:
        try:
            found += number(one)
        except psutil.Error:
            continue
    return found


def look(last: RunCounters, now: RunCounters) -> Look:
    """The run now, and since the last look."""
    latency, by = now.latency.since(last.latency), parts()
    moved = [sum(one.total.groups_moved for one in at.operators.values()) for at in (last, now)]
    me = psutil.Process()
    return Look(
        driver=me.pid,
        age_s=round(time.time() - me.create_time(), 1),
        p50_ms=round(latency.percentile_ms(0.5), 1),
        p99_ms=round(latency.percentile_ms(0.99), 1),
        events=latency.count,
        moves=moved[1] - moved[0],
        restarts=now.restarts,
        memory_mb={name: round(total(of, lambda one: one.memory_info().rss / 2**20), 1) for name, of in by.items()},
        files={name: int(total(of, lambda one: one.num_fds())) for name, of in by.items()},
        threads={name: int(total(of, lambda one: one.num_threads())) for name, of in by.items()},
    )


def read(file: Path) -> list[Look]:
    """All looks so far."""
    lines = file.read_bytes().splitlines() if file.exists() else []
    return [msgspec.json.decode(line, type=Look) for line in lines]


def soak(run: Run, file: Path, looks: int, sample_s: float, rescale_s: float) -> None:
    """Change replicas and look, until there are so many looks."""
    draw, console, last = random.Random(1), Console(stderr=True), run.fresh_counters()
    look_s, change_s = time.monotonic() + sample_s, time.monotonic() + rescale_s
    while len(read(file)) < looks:
        time.sleep(max(0.0, min(look_s, change_s) - time.monotonic()))
        if time.monotonic() >= change_s:
            run.set_replicas(draw.choice(KEYED), draw.sample(range(POOL), draw.randint(1, POOL)))
            change_s += rescale_s
        if time.monotonic() >= look_s:
            now = run.fresh_counters()
            with file.open("ab") as out:
                out.write(msgspec.json.encode(one := look(last, now)) + b"\n")
            console.print(one)
            last, look_s = now, look_s + sample_s


def slopes(looks: Sequence[Look]) -> dict[str, float]:
    """MB an hour in the longest life of a driver, but for its beginning."""
    lives = [[one for one in looks if one.driver == pid and one.age_s > YOUNG_S] for pid in {o.driver for o in looks}]
    longest = max(lives, key=len)
    if len(longest) < 3:
        return {}
    hours = [one.age_s / 3600 for one in longest]
    return {
        name: round(linear_regression(hours, [one.memory_mb[name] for one in longest]).slope, 1)
        for name in longest[0].memory_mb
    }


def medians(looks: Sequence[Look]) -> dict[str, Any]:
    """Of some looks."""
    numbers = {name: median(getattr(one, name) for one in looks) for name in ("p50_ms", "p99_ms", "events", "moves")}
    held = {
        what: {name: median(getattr(one, what)[name] for one in looks) for name in getattr(looks[0], what)}
        for what in ("memory_mb", "files", "threads")
    }
    return numbers | held


def summary(looks: Sequence[Look], missing: int) -> dict[str, Any]:
    """The first looks beside the last ones."""
    old = [one for one in looks if one.age_s > YOUNG_S] or list(looks)
    few = min(COMPARED, max(1, len(old) // 2))
    begin, end, slope = medians(old[:few]), medians(old[-few:]), slopes(looks)
    return {
        "looks": len(looks),
        "drivers": len({one.driver for one in looks}),
        "events": sum(one.events for one in looks),
        "restarts": max(one.restarts for one in looks),
        "missing": missing,
        "begin": begin,
        "end": end,
        "memory_mb_per_hour": slope,
        "grown": grown(begin, end, slope),
    }


def grown(begin: dict[str, Any], end: dict[str, Any], slope: dict[str, float]) -> list[str]:
    """What is more at the end than at the beginning, by more than noise."""
    found = [name for name in ("p50_ms", "p99_ms") if end[name] > LATER * begin[name] + LATER_MS]
    for what in ("files", "threads"):
        found += [f"{what} of {name}" for name in begin[what] if end[what][name] > MORE * begin[what][name]]
    memory = begin["memory_mb"]
    return found + [f"memory_mb of {name}" for name in slope if slope[name] > (MORE - 1) * memory[name]]


def main(
    minutes: Annotated[float, typer.Option(help="in all")] = 60.0,
    rate: Annotated[float, typer.Option(help="events a second")] = 1000.0,
    sample_s: Annotated[float, typer.Option(help="between looks")] = 60.0,
    rescale_s: Annotated[float, typer.Option(help="between changes of replicas")] = 10.0,
    folder: Annotated[Path, typer.Option(help="of the run and of what was seen")] = Path("out/soak"),
    resume: Annotated[bool, typer.Option("--resume", help="go on where it was stopped")] = False,
    json: Annotated[Path | None, typer.Option(help="a file for the result, too")] = None,
) -> None:
    """Run it, look at it, and compare."""
    if not resume:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    file, looks = folder / "looks.jsonl", max(2, round(60 * minutes / sample_s))
    options = RunOptions(folder=folder / "run")
    with Run(topology(), Steady(rate, queries(EVENTS)), replicas=dict.fromkeys(KEYED, 2), options=options) as run:
        soak(run, file, looks, sample_s, rescale_s)
        run.stop_sources()
        run.wait_drained(120)
        counters = run.fresh_counters()
        missing = sum(counters.sources.values()) - counters.operators["end"].total.processed
    told = summary(read(file), missing)
    found = msgspec.json.format(msgspec.json.encode(told)).decode()
    print(found)
    if json is not None:
        json.write_text(found)
    raise typer.Exit(bool(missing or told["grown"]))


if __name__ == "__main__":
    typer.run(main)
