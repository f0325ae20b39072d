"""A campaign of faults: a keyed topology under load is hurt at random, and what its sinks hold must be one history.

    python benchmarks/faults.py --faults 100 --seed 1
    python benchmarks/faults.py --faults 30 --only kill_worker,kill_driver --ends sqlite:latest
    python benchmarks/faults.py --faults 100 --cluster local --minutes 60 --json faults.json
    python benchmarks/faults.py --faults 100 --seed 1 --resume          # go on where it was stopped
    python benchmarks/faults.py --faults 20 --ends sqlite:latest --plain # the same against plain Structured Streaming

Real DNS queries are counted by name and by domain in rounds of ten faults, every other one with a standby, drawn by the
seed: also two at once, in the middle of recoveries, of moves of state and of changes of the layout. `faults_checker.py`
judges what the sinks hold. Prints one JSON object. With `--plain` the same faults, as far as there are such, also
befall a plain query with a checkpoint (`faults_plain.py`), and what came of that is under "plain". A disk is full where
the run's folder can be a file system of its own (as root); the clock jumps on Kafka only, as a trace is tied to the
clock, and where there is a C compiler.
"""

from __future__ import annotations

import shutil
import signal
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import typer
from faults_blows import ALWAYS, CLOCKS, CLUSTERED, PLAIN_TOO
from faults_checker import FAULTS
from faults_clock import can_jump
from faults_ends import KafkaEnds, PostgresEnds, SqliteEnds
from faults_plan import MOVES, Step, planned
from faults_round import RoundResult, can_mount, run_round
from rich.console import Console

ENDS = ("sqlite:latest", "postgresql:latest", "kafka:committed", "sqlite:committed", "postgresql:committed")
OF_ENDS = {"sqlite": SqliteEnds.kinds, "postgresql": PostgresEnds.kinds, "kafka": KafkaEnds.kinds}


def kinds_for(ends: str, clustered: bool, only: Sequence[str], mountable: bool) -> list[str]:
    """The faults that can be had there, of those that are wanted."""
    kinds = [*ALWAYS, *OF_ENDS[ends.partition(":")[0]], *(("disk_full",) if mountable else ())]
    kinds += CLUSTERED if clustered else ()
    if ends.startswith("kafka") and can_jump():
        kinds += CLOCKS
    return [kind for kind in kinds if not only or kind in only]


def summary(rounds: Sequence[RoundResult], seed: int) -> dict[str, Any]:
    """The one object that says it all."""
    struck = [(one, of) for of in rounds for one in of.faults if not one.missed]
    stood: defaultdict[str, list[float]] = defaultdict(list)
    for one, _ in struck:
        if one.stood_still_s is not None:
            stood[one.kind].append(one.stood_still_s)
    slopes = [one.memory_mb_per_hour for one in rounds if one.memory_mb_per_hour]
    return {
        "seed": seed,
        "rounds": len(rounds),
        "events": sum(one.events for one in rounds),
        "faults": len(struck),
        "missed": sum(bool(one.missed) for of in rounds for one in of.faults),
        "amid_another": sum(one.stood_still_s is None for one, _ in struck),
        "survived": sum(of.good for _, of in struck),
        "by_kind": dict(sorted(Counter(one.kind for one, _ in struck).items())),
        **{name: sum(one.verdict[name] for one in rounds) for name in ("dead_lettered", "dropped", *FAULTS)},
        "stuck": [f"round {number}: {one.stuck}" for number, one in enumerate(rounds) if one.stuck],
        "drivers_ended_unasked": [why for one in rounds for why in one.unasked],
        "moves_refused": sum(len(one.refused) for one in rounds),
        "stood_still_s": {
            kind: {"p50": round(statistics.median(all_s), 2), "max": max(all_s)}
            for kind, all_s in sorted(stood.items())
        },
        "processes_left_behind": sum(len(one.left_behind) for one in rounds),
        "peak_mb": {
            what: max((one.peak_mb.get(what, 0) for one in rounds), default=0) for what in ("driver", "jvm", "workers")
        },
        "memory_mb_per_hour": {
            what: round(statistics.median(one[what] for one in slopes), 1) for what in (slopes[0] if slopes else ())
        },
        "minutes": round(sum(one.took_s for one in rounds) / 60, 1),
    }


def main(
    faults: Annotated[int, typer.Option("--faults", help="how many in all")] = 30,
    seed: Annotated[int, typer.Option("--seed", help="by which they are drawn")] = 1,
    minutes: Annotated[float, typer.Option(help="begin no round after so long")] = 600.0,
    cluster: Annotated[str, typer.Option("--cluster", help="local: on Master and Workers of its own")] = "",
    only: Annotated[str, typer.Option(help="kinds of faults, with commas between")] = "",
    ends: Annotated[str, typer.Option(help="where results go, in turn")] = ",".join(ENDS),
    a_round: Annotated[int, typer.Option(help="faults in a round")] = 10,
    rate: Annotated[float, typer.Option(help="events a second")] = 200.0,
    longest_s: Annotated[float, typer.Option(help="that a fault lasts at most")] = 30.0,
    json: Annotated[Path | None, typer.Option(help="a file for the result, too")] = None,
    folder: Annotated[Path, typer.Option(help="of the rounds' results")] = Path("out/faults"),
    resume: Annotated[bool, typer.Option("--resume", help="go on where it was stopped")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="also against plain Structured Streaming")] = False,
) -> None:
    """Play the rounds that are not done yet, and say what came of all."""
    if cluster not in ("", "local"):
        raise typer.BadParameter(f"must be local; got {cluster!r}", param_hint="--cluster")
    if unknown := [one for one in ends.split(",") if one.partition(":")[0] not in OF_ENDS]:
        raise typer.BadParameter(f"must be some of {', '.join(ENDS)}; got {unknown[0]!r}", param_hint="--ends")
    if plain and (unknown := [one for one in ends.split(",") if one.startswith("kafka")]):
        told = f"with --plain must be tables; got {unknown[0]!r}"
        raise typer.BadParameter(told, param_hint="--ends")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # with all that was started
    here = folder / f"seed-{seed}{'-cluster' * bool(cluster)}{'-plain' * plain}"
    if not resume:
        shutil.rmtree(here, ignore_errors=True)
    here.mkdir(parents=True, exist_ok=True)
    asked = Asked(
        faults, seed, minutes, bool(cluster), [one for one in only.split(",") if one], a_round, rate, longest_s
    )
    rounds = play_all(asked, ends.split(","), here, plain)
    result = summary(rounds[0], seed)
    if plain:
        result["plain"] = summary(rounds[1], seed)
    found = msgspec.json.format(msgspec.json.encode(result)).decode()
    print(found)
    if json is not None:
        json.write_text(found)
    raise typer.Exit(not all(one.good for one in rounds[0]))


class Asked(NamedTuple):
    """What was asked for."""

    faults: int
    seed: int
    minutes: float
    clustered: bool
    only: Sequence[str]
    a_round: int
    rate: float
    longest_s: float

    def steps(self, number: int, ends: str, plain: bool) -> list[Step]:
        """Of a round."""
        kinds = kinds_for(ends, self.clustered, self.only, can_mount())
        kinds = [one for one in kinds if one in PLAIN_TOO] if plain else kinds
        if not kinds:
            told = f"none of these can be had at {ends}; got {','.join(self.only)!r}"
            raise typer.BadParameter(told, param_hint="--only")
        count = min(self.a_round, self.faults - number * self.a_round)
        rare = [*OF_ENDS[ends.partition(":")[0]], *CLOCKS, *CLUSTERED]
        return planned(1000 * self.seed + number, count, kinds, self.longest_s, rare)


def play_all(asked: Asked, ends: Sequence[str], here: Path, plain: bool) -> tuple[list[RoundResult], list[RoundResult]]:
    """The rounds of Penstock, and if so, after each, the same one of plain Structured Streaming, which has no moves."""
    console, began_s = Console(stderr=True), time.monotonic()
    ours, others = list[RoundResult](), list[RoundResult]()
    for number in range(-(-asked.faults // asked.a_round)):
        name = ends[number % len(ends)]
        steps = asked.steps(number, name, plain)
        kinds = [(name, steps, f"round-{number}", ours)]
        if plain:
            still = [step for step in steps if step.kind not in MOVES]
            kinds.append((f"{name.partition(':')[0]}:plain", still, f"plain-{number}", others))
        for of, those, called, found in kinds:
            file = here / f"{called}.json"
            if not file.exists():
                if time.monotonic() - began_s > 60 * asked.minutes:
                    return ours, others
                about = {"clustered": asked.clustered, "seed": 1000 * asked.seed + number}
                result = run_round(of, those, asked.rate, here / f"kept-{called}", **about)  # type: ignore[arg-type]
                file.write_bytes(msgspec.json.format(msgspec.json.encode(result)))
            found.append(msgspec.json.decode(file.read_bytes(), type=RoundResult))
            tell(console, number, found[-1])
    return ours, others


def tell(console: Console, number: int, one: RoundResult) -> None:
    """One line on a round, and what is wrong with it."""
    struck = ", ".join(f"{kind} {times}" for kind, times in Counter(fault.kind for fault in one.faults).items())
    console.print(f"round {number}, {one.ends}, {one.events} events, {one.took_s:.0f} s: {struck}")
    if not one.good:
        wrong = {name: one.verdict[name] for name in (*FAULTS, "examples") if one.verdict[name]}
        others = {"ended unasked": one.unasked, "left behind": one.left_behind}
        wrong |= {name: found for name, found in others.items() if found}
        console.print(f"round {number}: not good: {one.stuck} {wrong}", style="bold red", markup=False)


if __name__ == "__main__":
    typer.run(main)
