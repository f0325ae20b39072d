"""Workers that exist on paper: regions with sizes, prices and start times, on the simulation's clock."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from penstock.common.names import one_of
from penstock.errors import InputError
from penstock.infra.worker import Worker, WorkerSize, WorkerState

START_S = 12.0  # a new Worker of Spark Standalone until it runs tasks
_USUAL = {"capacity": 1.0, "price": 1.0, "start": START_S, "delay_ms": 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A place that offers workers of some sizes; a new one is available after `start_s`.

    An event that goes from one region to another takes the `delay_s` of both longer.
    """

    name: str
    sizes: tuple[WorkerSize, ...]
    start_s: float = 0.0
    delay_s: float = 0.0

    def __post_init__(self) -> None:
        if not self.sizes:
            raise InputError(f"region '{self.name}': must offer at least one size of worker")
        for name in ("start_s", "delay_s"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InputError(f"region '{self.name}': {name} must be at least 0; got {getattr(self, name)}")


def parse_regions(text: str) -> tuple[Region, ...]:
    """Regions with the size, price and start time of their workers, and how far they are from the others.

    >>> near, far = parse_regions("near; far:capacity=4,price=0.6,start=30,delay_ms=20")
    >>> near.sizes[0].capacity, near.start_s, far.sizes[0], far.delay_s
    (1, 12.0, WorkerSize(name='far', capacity=4, price=0.6), 0.02)
    >>> parse_regions("near:size=4")
    Traceback (most recent call last):
    penstock.errors.InputError: regions: region 'near': no such name 'size'; known: capacity, price, start, delay_ms
    """
    regions = tuple(_region(part.strip()) for part in text.split(";") if part.strip())
    names = [one.name for one in regions]
    if not names or len(set(names)) < len(names):
        raise InputError(f"regions: must be names, each once, as near;far:capacity=4,price=0.6; got {text!r}")
    return regions


def _region(part: str) -> Region:
    name, _, options = part.partition(":")
    chosen = dict(_USUAL)
    for option in filter(None, (one.strip() for one in options.split(","))):
        key, _, value = option.partition("=")
        one_of(f"regions: region '{name}'", key, _USUAL)
        try:
            chosen[key] = float(value)
        except ValueError:
            raise InputError(f"regions: region '{name}': {key} must be a number; got {value!r}") from None
    capacity = chosen["capacity"]
    if capacity != int(capacity):
        raise InputError(f"regions: region '{name}': capacity must be a whole number; got {capacity:g}")
    size = WorkerSize(name=name, capacity=int(capacity), price=chosen["price"])
    return Region(name=name, sizes=(size,), start_s=chosen["start"], delay_s=chosen["delay_ms"] / 1000)


class Spent(NamedTuple):
    """What workers came to: their seconds, and these times their prices."""

    worker_seconds: float = 0.0
    price: float = 0.0

    @classmethod
    def of(cls, worker: Worker, lived_s: float) -> Spent:
        """What one worker came to."""
        return cls(lived_s, lived_s * worker.price)

    def __add__(self, other: tuple[float, ...]) -> Spent:  # type: ignore[override]
        return Spent(self.worker_seconds + other[0], self.price + other[1])


class SimulatedWorkers:
    """Regions whose workers start and stop as the clock goes on.

    >>> now = [0.0]
    >>> workers = SimulatedWorkers([Region(name="here", sizes=(WorkerSize(name="one", capacity=1),), start_s=30.0)],
    ...                            now=lambda: now[0])
    >>> name = workers.add("here", workers.sizes()["here"][0])
    >>> now[0] = 60.0
    >>> [(worker.name, worker.state.value) for worker in workers.list()], workers.seconds
    ([('here-1', 'available')], 60.0)
    """

    def __init__(self, regions: Sequence[Region], now: Callable[[], float]) -> None:
        self._regions = {region.name: region for region in regions}
        self._now = now
        self._workers: dict[str, Worker] = {}
        self._started_s: dict[str, float] = {}
        self._ended = {name: Spent() for name in self._regions}  # of workers that have ended
        self._count = 0

    def list(self) -> Sequence[Worker]:
        """The workers that have not been stopped, the oldest first."""
        return [self._grown(worker) for worker in self._workers.values()]

    def sizes(self) -> Mapping[str, Sequence[WorkerSize]]:
        """What every region offers."""
        return {name: region.sizes for name, region in self._regions.items()}

    def add(self, region: str, size: WorkerSize) -> str:
        """Start a worker."""
        one_of("region", region, self._regions)
        self._count += 1
        name = f"{region}-{self._count}"
        self._workers[name] = Worker(
            name=name, region=region, capacity=size.capacity, price=size.price, state=WorkerState.STARTING
        )
        self._started_s[name] = self._now()
        return name

    def begin_with(self, region: str, size: WorkerSize, count: int) -> None:
        """Have so many workers that are available already."""
        for _ in range(count):
            name = self.add(region, size)
            self._workers[name] = self._workers[name].turned(WorkerState.AVAILABLE)

    def drain(self, name: str) -> None:
        """Put nothing more on it."""
        self._workers[name] = self._known(name).turned(WorkerState.DRAINING)

    def restore(self, name: str) -> None:
        """Make a draining worker available again."""
        self._workers[name] = self._known(name).turned(WorkerState.AVAILABLE)

    def remove(self, name: str) -> None:
        """Stop it."""
        worker = self._known(name)
        self._ended[worker.region] += Spent.of(worker, self._now() - self._started_s.pop(name))
        del self._workers[name]

    @property
    def seconds(self) -> float:
        """Worker-seconds so far."""
        return sum(one.worker_seconds for one in self.spent().values())

    @property
    def price(self) -> float:
        """What the workers have cost so far."""
        return sum(one.price for one in self.spent().values())

    def spent(self) -> dict[str, Spent]:
        """What each region's workers came to so far."""
        spent = dict(self._ended)
        for name, worker in self._workers.items():
            spent[worker.region] += Spent.of(worker, self._now() - self._started_s[name])
        return spent

    def _known(self, name: str) -> Worker:
        if name not in self._workers:
            raise InputError(f"worker '{name}': is not running; known: {', '.join(self._workers) or 'none'}")
        return self._grown(self._workers[name])

    def _grown(self, worker: Worker) -> Worker:
        """The worker as it is now: one that has started is available."""
        started = self._now() - self._started_s[worker.name] >= self._regions[worker.region].start_s
        if worker.state is WorkerState.STARTING and started:
            worker = self._workers[worker.name] = worker.turned(WorkerState.AVAILABLE)
        return worker
