"""The collecting sink: every event with its id, one file for each replica."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cloudpickle
import msgspec
import pytest

from penstock.sinks import CollectSink, collected


class Tweet(msgspec.Struct):
    text: str


def context(replica: int = 0, operator: str = "end") -> Any:
    return SimpleNamespace(run="r", operator=operator, replica=replica, event_ids=(), repeated=lambda _: None)


def test_what_replicas_collect_is_read_back_with_its_ids(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    for replica in range(2):
        sink, about = CollectSink(folder), context(replica)
        sink.open(about)
        about.event_ids = (f"{replica}.0",)
        sink.process({"n": replica})
        about.event_ids = (f"{replica}.1", f"{replica}.2")
        sink.process_many([Tweet("storm"), ["a", 1]])
        sink.close()
    assert len(list(folder.iterdir())) == 2
    assert sorted(collected(folder)) == [
        ("0.0", {"n": 0}),
        ("0.1", {"text": "storm"}),
        ("0.2", ["a", 1]),
        ("1.0", {"n": 1}),
        ("1.1", {"text": "storm"}),
        ("1.2", ["a", 1]),
    ]


def test_events_are_on_disk_before_the_sink_is_closed(tmp_path: Path) -> None:
    sink, about = CollectSink(tmp_path), context()
    sink.open(about)
    about.event_ids = ("7",)
    sink.process("x")
    assert collected(tmp_path) == [("7", "x")]
    sink.close()


def test_a_sink_that_is_opened_again_goes_on(tmp_path: Path) -> None:
    for number in range(2):
        sink, about = CollectSink(tmp_path), context()
        sink.open(about)
        about.event_ids = (str(number),)
        sink.process(number)
        sink.close()
    assert collected(tmp_path) == [("0", 0), ("1", 1)]


def test_an_empty_folder_holds_nothing(tmp_path: Path) -> None:
    assert collected(tmp_path) == []


def test_a_sink_is_shipped_unopened_and_gets_nothing_before_it_is_opened(tmp_path: Path) -> None:
    sink = cloudpickle.loads(cloudpickle.dumps(CollectSink(tmp_path)))
    with pytest.raises(RuntimeError, match="a sink is opened before it gets events"):
        sink.process("x")
    sink.close()
