"""`--regions`: where simulated workers may be started, as the user writes it."""

from __future__ import annotations

from penstock.common.names import one_of
from penstock.errors import InputError
from penstock.infra.simulated import Region
from penstock.infra.worker import WorkerSize
from penstock.simulator.cluster import START_S

DEFAULTS = {"capacity": 1.0, "price": 1.0, "start": START_S, "delay_ms": 0.0}


def parse_regions(text: str) -> tuple[Region, ...]:
    """Regions with the size, price and start time of their workers, and how far they are from the others.

    >>> near, far = parse_regions("near; far:capacity=4,price=0.6,start=30,delay_ms=20")
    >>> near.sizes[0].capacity, near.start_s, far.sizes[0], far.delay_s
    (1, 12.0, WorkerSize(name='far', capacity=4, price=0.6), 0.02)
    >>> parse_regions("near:size=4")
    Traceback (most recent call last):
    penstock.errors.InputError: --regions: region 'near': no such name 'size'; known: capacity, price, start, delay_ms
    """
    regions = tuple(_region(part.strip()) for part in text.split(";") if part.strip())
    names = [one.name for one in regions]
    if not names or len(set(names)) < len(names):
        raise InputError(f"--regions: must name regions, each once, as near;far:capacity=4,price=0.6; got {text!r}")
    return regions


def _region(part: str) -> Region:
    name, _, options = part.partition(":")
    chosen = dict(DEFAULTS)
    for option in filter(None, (one.strip() for one in options.split(","))):
        key, _, value = option.partition("=")
        one_of(f"--regions: region '{name}'", key, DEFAULTS)
        try:
            chosen[key] = float(value)
        except ValueError:
            raise InputError(f"--regions: region '{name}': {key} must be a number; got {value!r}") from None
    capacity = chosen["capacity"]
    if capacity != int(capacity):
        raise InputError(f"--regions: region '{name}': capacity must be a whole number; got {capacity:g}")
    size = WorkerSize(name=name, capacity=int(capacity), price=chosen["price"])
    return Region(name=name, sizes=(size,), start_s=chosen["start"], delay_s=chosen["delay_ms"] / 1000)
