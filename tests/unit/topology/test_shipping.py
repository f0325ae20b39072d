"""A function that cannot be shipped to a worker is found before the run, and what is to blame is named."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.errors import TopologyError
from penstock.topology import Operator, Topology

ADVICE = "open such things in open(), which runs in the worker"


def declared(run: Any, key: Any = None) -> tuple[Topology, Operator]:
    topology = Topology("app")
    return topology, topology.operator("parse", run, inputs=topology.source("events"), key=key)


def refusal(topology: Topology) -> str:
    with pytest.raises(TopologyError) as caught:
        topology.check()
    return str(caught.value)


def locked_function() -> Callable[[Any], Any]:
    lock = threading.Lock()

    def guarded(event: Any) -> Any:
        with lock:
            return event

    return guarded


class Writer:
    def __init__(self, file: Path) -> None:
        self.name = "writer"
        self.output = file.open("w")

    def process(self, event: Any) -> None:
        self.output.write(str(event))


@dataclass(slots=True)
class Slotted:
    lock: Any = field(default_factory=threading.Lock)

    def process(self, event: Any) -> Any:
        return event


class OpenedInTheWorker:
    def open(self, context: object) -> None:
        self.lock = threading.Lock()

    def process(self, event: Any) -> Any:
        return event


def test_a_lock_in_a_closure() -> None:
    topology, operator = declared(locked_function())
    message = refusal(topology)
    assert message.startswith(f"{operator}: run cannot be shipped to a worker because of 'lock' (lock): ")
    assert message.endswith(ADVICE)


def test_an_open_file_as_an_attribute(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "out.txt")
    topology, operator = declared(writer)
    message = refusal(topology)
    writer.output.close()
    assert message.startswith(f"{operator}: run cannot be shipped to a worker because of 'output' (TextIOWrapper): ")
    assert message.endswith(ADVICE)


def test_a_lock_in_a_slot() -> None:
    topology, operator = declared(Slotted())
    assert refusal(topology).startswith(f"{operator}: run cannot be shipped to a worker because of 'lock' (lock): ")


def test_a_global_of_a_function_that_goes_by_value() -> None:
    names: dict[str, Any] = {"__name__": "__main__", "guard": threading.Lock()}
    exec("def parse(event):\n    with guard:\n        return event\n", names)
    topology, operator = declared(names["parse"])
    assert refusal(topology).startswith(f"{operator}: run cannot be shipped to a worker because of 'guard' (lock): ")


def test_a_key_function_is_shipped_too() -> None:
    topology, operator = declared(lambda event: event, key=locked_function())
    assert refusal(topology).startswith(f"{operator}: key cannot be shipped to a worker because of 'lock' (lock): ")


@pytest.mark.parametrize("run", [OpenedInTheWorker(), lambda event: event, print], ids=["class", "lambda", "builtin"])
def test_what_can_be_shipped(run: Any) -> None:
    topology, _ = declared(run)
    topology.check()


def test_a_struct_that_would_lose_its_fields_on_the_way_is_refused() -> None:
    """cloudpickle ships classes of functions and of the main script by value; a Struct arrives without its fields."""

    class Local(msgspec.Struct):
        text: str

    def clean(event: Local) -> Local:
        return event

    clean.__annotations__ = {"event": Local}
    topology = Topology("typed")
    topology.operator("clean", clean, inputs=topology.source("tweets"))
    with pytest.raises(TopologyError, match=r"operator 'clean' \(test_shipping.py:\d+\): a msgspec Struct must be"):
        topology.check()
