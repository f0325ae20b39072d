"""Kafka to Kafka beside Bytewax and Quix Streams: latency, highest rate, CPU; and a run that begins behind.

    python benchmarks/kafka.py --rounds 3 --json kafka.json

The four operators of `engine.py` with the same function in all three, on one broker, topics of four partitions, at
least once with a checkpoint (snapshot, commit) every 10 s, and redistribution between all operators: Bytewax in a
cluster of two processes with `redistribute`; Quix Streams in two processes with a topic between each two operators,
as its `group_by` can be used once in a chain; Penstock with two replicas of each. What writes to Kafka stands where the
last operator does. Latency is from an event's time in the input topic to its arrival at a reader of the output topic.
The highest rate is that of many events which become visible at once, in a transaction, to a contender that is warm.

A run begins ten minutes behind while more comes, its operators taking 5 ms for an event: as fast as the same pools
with all events in a file, memory bounded; and with the replicas that psps, counting what waits upstream, asks for,
where events are bound early and late.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rounds import Figures, Scenario, measure, play, write

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))
from tests.services.kafka import Kafka, java  # noqa: E402 - the tests' broker

SCENARIOS = Path(__file__).with_name("kafka_scenarios.py")
REQUIREMENTS = Path(__file__).with_name("kafka_chains") / "requirements.txt"
OTHERS = ROOT / ".bench-venv"
SYSTEMS = ("penstock", "bytewax", "quix")
RATES = ("200", "2000")
COUNT = "400000"
POLICY = "psps:predecessor_backlog"


def plan(rounds: int, count: str, behind_s: str) -> list[Scenario]:
    """Every scenario of every round, alternating between the systems."""
    once: list[Scenario] = [("latency", system, rate) for rate in RATES for system in SYSTEMS]
    once += [("rate", system, count) for system in SYSTEMS]
    late = [("behind", "none", behind_s), ("behind", POLICY, behind_s), ("behind", POLICY, behind_s, "pull")]
    return [*once * rounds, ("saturated", "20000"), *late]


def main() -> None:
    arguments = argparse.ArgumentParser(description="Kafka to Kafka beside Bytewax and Quix Streams.")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--events", default=COUNT, help="to be worked off at the highest rate")
    arguments.add_argument("--behind", default="600", help="seconds by which a run begins late")
    arguments.add_argument("--json", type=Path, help="also write the result here")
    options = arguments.parse_args()
    install()
    with tempfile.TemporaryDirectory(prefix="penstock-kafka-", ignore_cleanup_errors=True) as folder:
        broker = Kafka(Path(folder), flags=())
        try:
            broker.start()
            result = play(
                plan(options.rounds, options.events, options.behind), partial(measure, SCENARIOS, broker.address)
            )
        finally:
            broker.kill()
    tell(result)
    write(result, options.json)


def install() -> None:
    """Make the environment of the other two where it is not there yet; say so if that, or Kafka, cannot be had."""
    if java() is None and subprocess.run([ROOT / "scripts" / "kafka.sh"], check=False).returncode:
        raise SystemExit("this benchmark needs a Kafka broker, which cannot be had here: see the message above")
    made = OTHERS / "requirements.txt"  # written last: it says that all is there
    if made.is_file() and made.read_text() == REQUIREMENTS.read_text():
        return
    print("installing Bytewax and Quix Streams into .bench-venv", file=sys.stderr)
    python = str(OTHERS / "bin" / "python")
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(OTHERS)],
        [python, "-m", "pip", "install", "--quiet", "--requirement", str(REQUIREMENTS)],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            told = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1]
            raise SystemExit(f"this benchmark needs Bytewax and Quix Streams, which could not be installed: {told}")
    made.write_text(REQUIREMENTS.read_text())


def tell(result: dict[str, Figures]) -> None:
    console = Console()
    for rate in RATES:
        console.print(_latencies(rate, {system: result[f"latency {system} {rate}"] for system in SYSTEMS}))
    rates = {
        system: next(one for name, one in result.items() if name.startswith(f"rate {system}")) for system in SYSTEMS
    }
    console.print(_rates(rates))
    (full,), (behind, *sized) = (_of(result, kind) for kind in ("saturated", "behind"))
    console.print(
        f"begun {behind['behind_s']:.0f} s behind: {behind['rate']:.0f} events/s, {behind['rate'] / full['rate']:.2f} "
        f"of the {full['rate']:.0f} of the same pools from a file; memory {behind['memory_early_mb']:.0f} MB at first, "
        f"{behind['memory_most_mb']:.0f} MB at most"
    )
    for grouping, one in zip(("shuffle", "pull"), sized, strict=True):
        console.print(
            f"under {POLICY}, {grouping}: {one['active_behind']:.0f} replicas while behind, "
            f"{one['active_afterwards']:.0f} afterwards; caught up after {one['took_s']:.0f} s "
            f"({behind['took_s']:.0f} s with all {behind['active_behind']:.0f}), "
            f"{one['rate'] / full['rate']:.2f} of the full rate, memory {one['memory_most_mb']:.0f} MB at most"
        )


def _of(result: dict[str, Figures], kind: str) -> list[Figures]:
    return [one for name, one in result.items() if name.split()[0] == kind]


def _latencies(rate: str, figures: dict[str, Figures]) -> Table:
    table = Table("system", title=f"Kafka to Kafka, four operators, {int(rate):,} events/s; medians")
    for name in ("p50 ms", "p90 ms", "p99 ms", "p99 to Penstock's", "CPU s/1000"):
        table.add_column(name, justify="right")
    for system, one in figures.items():
        times = [f"{one[name]:.0f}" for name in ("p50", "p90", "p99")]
        table.add_row(system, *times, f"{one['p99'] / figures['penstock']['p99']:.2f}×", f"{one['cpu_s_per_1000']:.3f}")
    return table


def _rates(figures: dict[str, Figures]) -> Table:
    table = Table("system", title="highest rate; medians")
    for name in ("events/s", "Penstock's to it", "CPU s/1000"):
        table.add_column(name, justify="right")
    for system, one in figures.items():
        ratio = figures["penstock"]["rate"] / one["rate"]
        table.add_row(system, f"{one['rate']:,.0f}", f"{ratio:.2f}×", f"{one['cpu_s_per_1000']:.3f}")
    return table


if __name__ == "__main__":
    main()
