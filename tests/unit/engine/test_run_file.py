"""A folder knows which run it holds, and refuses what cannot carry it on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.common.files import unsealed
from penstock.engine.options import RunOptions
from penstock.engine.run_file import FILE, run_file
from penstock.errors import InputError
from penstock.sinks import DatabaseSink
from penstock.topology import Topology


def count(event: Any, state: dict[str, int]) -> None: ...


def topology(pool: int = 4, name: str = "count") -> Topology:
    made = Topology("words", pool=pool)
    made.operator(name, count, inputs=made.source("words"), key="word")
    return made


def test_a_new_folder_holds_a_new_run(tmp_path: Path) -> None:
    assert run_file(None, topology(), RunOptions(), "a").id == "a"
    assert run_file(tmp_path, topology(), RunOptions(), "a").id == "a"
    assert run_file(tmp_path / "none", topology(), RunOptions(), "a").generation == -1


def test_what_was_written_is_carried_on(tmp_path: Path) -> None:
    first = run_file(tmp_path, topology(), RunOptions(), "a")
    msgspec.structs.replace(first, epoch_s=17.0, generation=3).write(tmp_path)
    again = run_file(tmp_path, topology(), RunOptions(), "b")
    assert (again.id, again.epoch_s, again.generation) == ("a", 17.0, 3)


def changed(**changes: Any) -> Topology:
    """The topology with other inputs, keys or names."""
    made = Topology("words", pool=changes.get("pool", 4))
    words = made.source(changes.get("source", "words"))
    if changes.get("more"):
        made.operator("more", len, inputs=made.source("others"))
    if changes.get("state", True):
        given = {"key": changes.get("key", "word"), "key_groups": changes.get("key_groups", 128)}
        made.operator(changes.get("name", "count"), count, inputs=words, **given)
    else:
        made.operator("count", len, inputs=words)
    return made


@pytest.mark.parametrize(
    ("other", "options", "differs"),
    [
        (changed(name="tally"), RunOptions(), "'count' was state by word in 128 key groups, is not there"),
        (changed(state=False), RunOptions(), "'count' was state by word in 128 key groups, is not there"),
        (changed(key="text"), RunOptions(), "is state by text in 128 key groups"),
        (changed(key_groups=64), RunOptions(), "is state by word in 64 key groups"),
        (
            changed(source="texts"),
            RunOptions(),
            "'words' was a source, is not there; 'texts' was not there, is a source",
        ),
        (changed(more=True), RunOptions(), "'others' was not there, is a source"),
        (changed(), RunOptions(mode="microbatch"), "mode was 'realtime', is 'microbatch'"),
        (changed(), RunOptions(source_slots=2), "source_slots was 1, is 2"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_differs(
    tmp_path: Path, other: Topology, options: RunOptions, differs: str
) -> None:
    run_file(tmp_path, topology(), RunOptions(), "a").write(tmp_path)
    with pytest.raises(InputError, match="holds a run that cannot be carried on so: ") as caught:
        run_file(tmp_path, other, options, "b")
    assert differs in str(caught.value)


def test_pools_and_all_that_keeps_nothing_may_change(tmp_path: Path) -> None:
    """Another pool was refused, though state goes by key group and nothing is in flight at a checkpoint."""
    run_file(tmp_path, topology(), RunOptions(), "a").write(tmp_path)
    other = topology(pool=2)
    before = other.operator("before", len, inputs=other.sources["words"])
    other.operator("new", count, inputs=before, key="word")
    again = run_file(tmp_path, other, RunOptions(), "b")
    assert (again.id, sorted(again.topology)) == ("a", ["count", "new", "words"])
    again.write(tmp_path)  # from now on the new one must stay, too
    with pytest.raises(InputError, match="'new' was state by word in 128 key groups, is not there"):
        run_file(tmp_path, topology(), RunOptions(), "c")


def sink(tmp_path: Path, level: str, name: str = "store") -> Topology:
    made = Topology("stored")
    made.operator(name, DatabaseSink(f"sqlite:///{tmp_path}/out.db", level=level), inputs=made.source("words"))
    return made


def test_a_sink_that_has_yet_to_show_something_must_be_there(tmp_path: Path) -> None:
    run_file(tmp_path, sink(tmp_path, "committed"), RunOptions(), "a").write(tmp_path)
    with pytest.raises(InputError, match="'store' was a sink that shows what is committed, is not there"):
        run_file(tmp_path, sink(tmp_path, "committed", "keep"), RunOptions(), "b")
    assert run_file(tmp_path, sink(tmp_path, "latest"), RunOptions(), "b").id == "a"  # it completes what it had


def test_a_broken_file(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{")
    with pytest.raises(InputError, match=r"run.json: does not say which run this is"):
        run_file(tmp_path, topology(), RunOptions(), "b")


@pytest.mark.parametrize(("version", "found"), [(None, 1), (3, 3)], ids=["older", "newer"])
def test_a_folder_of_another_version_is_refused_with_what_to_do(
    tmp_path: Path, version: int | None, found: int
) -> None:
    run_file(tmp_path, topology(), RunOptions(), "a").write(tmp_path)
    written = msgspec.json.decode(unsealed((tmp_path / FILE).read_bytes()))
    del written["version"]  # as 0.1 wrote it
    written |= {} if version is None else {"version": version}
    (tmp_path / FILE).write_bytes(msgspec.json.encode(written))
    with pytest.raises(InputError) as caught:
        run_file(tmp_path, topology(), RunOptions(), "b")
    assert str(caught.value) == (
        f"{tmp_path}: holds a run of format {found}; this version of Penstock carries on format 2: "
        "finish it with the version that began it, or begin anew in another folder"
    )
