"""How soon a run is back after a Python worker was killed: the first new event, and the delay as before.

    python benchmarks/recovery.py --kills 10 [--standby]
    python benchmarks/recovery.py --kills 100 --json recovery.json

Two operators that wait for each event, one of them with state by key, are busy for 70 % of the time with half of their
pools, under checkpoints every 10 s. A worker of theirs is killed at a random moment, again and again. A sink writes
down when it got which event, and from these notes alone follows, for each kill:

- `back`: until the first event reaches the sink in the next attempt;
- `new`: until the first event reaches it that had not before;
- `calm`: until events take as long as before the kill, and go on to do so for a second.

Prints the median and the largest of each, the first half of the kills beside the second, and whether anything was lost.
"""

from __future__ import annotations

import os
import random
import signal
import struct
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Annotated, Any, NamedTuple

import msgspec
import typer
from rich.console import Console

from penstock import RunOptions, Topology, TraceSource, constant
from penstock.engine.run import Run
from penstock.topology import Context

NOTE = "<qqd"  # number of the event, attempt, time
SIZE = struct.calcsize(NOTE)
POOL, ACTIVE = 8, 4
LOAD = 0.7
KEYS = 5000
EVERY_S = 10.0  # checkpoints
BEFORE_S = 5.0  # by which the delay before a kill is told
SLACK_S = 0.02


class Delivered(NamedTuple):
    """An event that has reached the sink."""

    at_s: float
    number: int
    attempt: int


class Recovery(msgspec.Struct, kw_only=True):
    """What came of one kill, in seconds after it; None if it never came."""

    at_s: float
    since_checkpoint: float
    back: float | None
    new: float | None
    calm: float | None


class Wait:
    """An operator that takes its time for each event."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def process(self, event: dict[str, Any]) -> dict[str, Any]:
        """Wait."""
        time.sleep(self._seconds)
        return event


class Count(Wait):
    """The same, and counts by key."""

    def process(self, event: dict[str, Any], state: dict[str, int]) -> dict[str, Any]:  # type: ignore[override]
        """Count and wait."""
        state["seen"] = state.get("seen", 0) + 1
        return {**super().process(event), "seen": state["seen"]}


class Notes:
    """A sink that writes down what came when; each replica, in each attempt, has a file of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self, context: Context) -> None:
        """Begin a file."""
        self._context = context
        name = f"{context.attempt}-{context.replica}-{os.getpid()}"
        self._file = os.open(self._folder / name, os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def process(self, event: dict[str, Any]) -> None:
        """Write it down."""
        os.write(self._file, struct.pack(NOTE, event["n"], self._context.attempt, time.time()))


def read_notes(folder: Path) -> list[Delivered]:
    """All notes, in the order in which events came."""
    found = []
    for file in folder.iterdir():
        whole = file.read_bytes()[: file.stat().st_size // SIZE * SIZE]
        found += [Delivered(at_s, number, attempt) for number, attempt, at_s in struct.iter_unpack(NOTE, whole)]
    return sorted(found)


def topology(rate: float, notes: Path) -> Topology:
    """At that rate, half of the pools are busy for LOAD of the time."""
    wait_s = LOAD * ACTIVE / rate
    waits = Topology("recovery")
    work = waits.operator("work", Wait(wait_s), inputs=waits.source("numbers"), pool=POOL)
    count = waits.operator("count", Count(wait_s), inputs=work, key="key", pool=POOL, key_groups=256)
    waits.operator("end", Notes(notes), inputs=count, pool=1)
    return waits


def recoveries(
    notes: Sequence[Delivered], kills: Sequence[tuple[float, float]], due_s: Sequence[float]
) -> list[Recovery]:
    """What came of each kill, a time and how long the last checkpoint had been ago; `due_s` is when events were due."""
    found = []
    for index, (at_s, since) in enumerate(kills):
        until_s = kills[index + 1][0] if index + 1 < len(kills) else float("inf")
        before = [one for one in notes if one.at_s <= at_s]
        seen, attempt = {one.number for one in before}, max((one.attempt for one in before), default=-1)
        after = [one for one in notes if at_s < one.at_s <= until_s and one.attempt > attempt]
        new = [one for one in after if one.number not in seen]
        usual = [one.at_s - due_s[one.number] for one in before if one.at_s > at_s - BEFORE_S]
        found.append(
            Recovery(
                at_s=at_s,
                since_checkpoint=since,
                back=_after(at_s, (one.at_s for one in after)),
                new=_after(at_s, (one.at_s for one in new)),
                calm=_calm(at_s, new, usual, due_s),
            )
        )
    return found


def _after(at_s: float, times: Iterable[float]) -> float | None:
    first = min(times, default=None)
    return None if first is None else round(first - at_s, 3)


def _calm(at_s: float, new: Sequence[Delivered], usual: Sequence[float], due_s: Sequence[float]) -> float | None:
    """When a second begins of whose events half take no longer than nine of ten did before."""
    if len(usual) < 2 or not new:
        return None
    limit = quantiles(usual, n=10)[-1] + SLACK_S
    begin = 0
    for end, one in enumerate(new):
        while new[begin].at_s < one.at_s - 1.0:
            begin += 1
        if begin and median(each.at_s - due_s[each.number] for each in new[begin : end + 1]) <= limit:
            return round(new[begin].at_s - at_s, 3)
    return None


def hurt(run: Run, kills: int, pause_s: float, draw: random.Random) -> list[tuple[float, float]]:
    """Kill workers one after another; when that was, and how long the last checkpoint had been ago."""
    struck = []
    for _ in range(kills):
        time.sleep(pause_s + draw.uniform(0, EVERY_S))
        name = draw.choice(("work", "count"))
        victim = run.places()[name, draw.choice(run.active[name])]
        os.kill(victim.pid, signal.SIGKILL)
        struck.append((time.time(), time.time() - run.checkpoint_status().at_s))
    time.sleep(pause_s)
    return struck


def summary(found: Sequence[Recovery], lost: int, delay_ms: float) -> dict[str, Any]:
    """Of all kills, and of their halves."""
    half = len(found) // 2
    result: dict[str, Any] = {"kills": len(found), "lost": lost, "delay_ms": round(delay_ms, 1)}
    for name in ("since_checkpoint", "back", "new", "calm"):
        all_s = [getattr(one, name) for one in found]
        known = [one for one in all_s if one is not None]
        result[name] = {
            "p50": round(median(known), 2) if known else None,
            "max": round(max(known), 2) if known else None,
            "first_half": round(median(one for one in known[:half]), 2) if known[:half] else None,
            "second_half": round(median(one for one in known[half:]), 2) if known[half:] else None,
            "never": len(all_s) - len(known),
        }
    return result


def main(
    kills: Annotated[int, typer.Option("--kills", help="how many")] = 10,
    rate: Annotated[float, typer.Option(help="events a second")] = 100.0,
    warm_up_s: Annotated[float, typer.Option(help="before the first")] = 30.0,
    pause_s: Annotated[float, typer.Option(help="between two, and up to 10 s more")] = 15.0,
    seed: Annotated[int, typer.Option(help="by which moments and workers are drawn")] = 1,
    standby: Annotated[bool, typer.Option("--standby", help="the next attempt waits beside the one at work")] = False,
    json: Annotated[Path | None, typer.Option(help="a file for the result, with every kill")] = None,
) -> None:
    """Run it, kill its workers, and say how soon it was back."""
    seconds = warm_up_s + kills * (pause_s + EVERY_S) + pause_s + 10
    events = [{"n": n, "key": n * 7919 % KEYS} for n in range(round(rate * seconds))]
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes"
        notes.mkdir()
        options = RunOptions(folder=Path(folder) / "run", checkpoint_every_s=EVERY_S, standby=standby)
        source, replicas = TraceSource(constant(rate, seconds), events), {"work": ACTIVE, "count": ACTIVE}
        with Run(topology(rate, notes), source, replicas=replicas, options=options) as run:
            time.sleep(warm_up_s)
            struck = hurt(run, kills, pause_s, random.Random(seed))
            epoch_s = run.epoch_s or 0.0
            run.stop(60)
            sent = sum(run.counters().sources.values())
        delivered = read_notes(notes)
    due_s = [epoch_s + n / rate for n in range(len(events))]
    found = recoveries(delivered, struck, due_s)
    first = [one.at_s - due_s[one.number] for one in delivered if struck and one.at_s < struck[0][0]]
    lost = sent - len({one.number for one in delivered})
    result = summary(found, lost, 1000 * median(first[len(first) // 2 :] or [0.0]))
    console = Console(stderr=True)
    for one in found:
        console.print({name: getattr(one, name) for name in ("since_checkpoint", "back", "new", "calm")})
    print(msgspec.json.format(msgspec.json.encode(result)).decode())
    if json is not None:
        json.write_bytes(msgspec.json.format(msgspec.json.encode(result | {"all": found})))
    raise typer.Exit(bool(lost))


if __name__ == "__main__":
    typer.run(main)
