"""One history at the sink, whatever happens: replicas change, workers are killed, then the driver, then the broker.

    python benchmarks/history.py                        # the database sink (SQLite), all of it
    python benchmarks/history.py --sink kafka           # from topic to topic, on a broker of its own
    python benchmarks/history.py --events 6000 --worker-kills 2 --driver-kills 1

Real DNS queries are counted by name and by domain, each result with both counts. At the end the sequence of every key
must be 1, 2, …, n, with no gap and no repetition, n being how often it came. One worker is killed in the last second.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from history_scenarios import parse, queries
from history_stage import LIMIT_S, Database, Driver, Topics
from rich.console import Console

SCENARIOS = Path(__file__).with_name("history_scenarios.py")


def faults(events: Iterable[dict[str, Any]], wanted: list[dict[str, Any]]) -> list[str]:
    """What is wrong with the sequences of the keys; nothing, if it is one history."""
    seen: dict[str, Counter[int]] = {}
    count = 0
    for event in events:
        count += 1
        for kind in ("name", "domain"):
            seen.setdefault(f"{kind} {event[kind]}", Counter())[event[f"of_{kind}"]] += 1
    often = Counter(f"{kind} {event[kind]}" for event in wanted for kind in ("name", "domain"))
    wrong = [] if count == len(wanted) else [f"{count} results instead of {len(wanted)}"]
    for key in sorted(often.keys() | seen.keys()):
        has = seen.get(key, Counter())
        twice = sorted(number for number, times in has.items() if times > 1)
        missing = sorted(set(range(1, often[key] + 1)) - has.keys())
        if twice or missing or len(has) != often[key]:
            wrong.append(f"{key}: {often[key]} in all; twice {twice[:8]}, missing {missing[:8]}")
    return wrong


class Scene:
    """A run that is hurt again and again, on one folder and one destination."""

    def __init__(self, folder: Path, endpoints: tuple[str, str], events: int, rate: float, changes: int) -> None:
        self._arguments = [str(folder / "run"), *endpoints, str(events), f"{rate:g}", str(changes)]
        self._log = folder / "driver.log"
        self.events, self.rate = events, rate
        self.kills = 0
        self._draw = random.Random(11)
        self.driver = self._start()

    def _start(self) -> Driver:
        return Driver([str(SCENARIOS), *self._arguments, str(self._draw.randrange(1000))], self._log)

    def until(self, true: Any) -> None:
        """Wait; an end of the driver that nobody asked for ends the scene."""
        deadline = time.monotonic() + LIMIT_S
        while not true():
            if self.driver.process.poll() not in (None, 0) or time.monotonic() > deadline:
                raise SystemExit(f"the driver ended, or took too long:\n{self._log.read_text()[-3000:]}")
            time.sleep(0.05)

    def kill_worker(self) -> None:
        """Kill one, as soon as there is one."""
        self.until(lambda: self.driver.kill_worker(self._draw) or self.driver.process.poll() is not None)
        self.kills += 1

    def kill_driver(self) -> None:
        """Kill it and start another on the same folder."""
        self.driver.kill()
        self.driver = self._start()
        self.until(lambda: self.driver.said("began"))

    def end(self) -> list[str]:
        """Wait for the end; how it said that it was."""
        self.until(lambda: self.driver.process.poll() is not None)
        if not (done := self.driver.said("done")):
            raise SystemExit(f"the driver did not finish:\n{self._log.read_text()[-3000:]}")
        return done[-1]

    @property
    def changes(self) -> int:
        """Of replicas, by all drivers."""
        return self._log.read_text(errors="replace").count("changed\n")


def play(scene: Scene, ends: Database | Topics, kills: tuple[int, int], console: Console) -> list[str]:
    """Hurt the run at even distances, and once in its last second."""
    worker_kills, driver_kills = kills
    scene.until(lambda: scene.driver.said("began"))
    ends.begin()
    epoch_s = float(scene.driver.said("began")[0][1])
    blows = ["worker"] * max(worker_kills - 1, 0) + ["driver"] * driver_kills
    random.Random(5).shuffle(blows)
    for number, blow in enumerate(blows, start=1):
        at_s = epoch_s + number / (len(blows) + 1) * scene.events / scene.rate
        scene.until(lambda at_s=at_s: time.time() >= at_s)
        console.print(f"{time.time() - epoch_s:6.1f} s: kill the {blow}")
        scene.kill_worker() if blow == "worker" else scene.kill_driver()
    if worker_kills:
        last_s = epoch_s + scene.events / scene.rate - 0.5
        scene.until(lambda: time.time() >= last_s)
        console.print(f"{time.time() - epoch_s:6.1f} s: kill a worker in the last second")
        scene.kill_worker()
    ends.end()
    return scene.end()


ENDS = ("database", "kafka")


def main(
    sink: Annotated[str, typer.Option(help="database or kafka")] = "database",
    events: Annotated[int, typer.Option(help="queries, of real ones in turn")] = 72_000,
    rate: Annotated[float, typer.Option(help="queries a second")] = 400.0,
    worker_kills: int = 10,
    driver_kills: int = 2,
    changes: Annotated[int, typer.Option(help="of replicas, by each driver")] = 20,
) -> None:
    """Run the scene, and say what is wrong with the history at the sink."""
    console = Console()
    if sink not in ENDS:
        raise typer.BadParameter(f"must be {' or '.join(ENDS)}; got {sink!r}", param_hint="--sink")
    with tempfile.TemporaryDirectory(prefix="penstock-history-", ignore_cleanup_errors=True) as name:
        ends = Database(Path(name)) if sink == "database" else Topics(Path(name), queries(events), rate, key="client")
        scene = Scene(Path(name), ends.urls, events, rate, changes)
        try:
            done = play(scene, ends, (worker_kills, driver_kills), console)
            wrong = faults(ends.stored(), [parse(one) for one in queries(events)])
        finally:
            if scene.driver.process.poll() is None:
                scene.driver.kill()
            ends.close()
        console.print(
            f"{events} events, {scene.changes} changes of replicas; killed: {scene.kills} workers, "
            f"{driver_kills} drivers, {ends.restarts} brokers; checkpoints of the last driver: {done[2]}, "
            f"given up {done[3]}"
        )
        for line in wrong[:20]:
            console.print(line)
        console.print(f"{len(wrong)} faults" if wrong else "one history: every sequence is 1, 2, …, n")
    raise typer.Exit(bool(wrong))


if __name__ == "__main__":
    typer.run(main)
