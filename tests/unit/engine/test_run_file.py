"""A folder knows which run it holds, and refuses another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.common.files import unsealed
from penstock.engine.options import RunOptions
from penstock.engine.run_file import FILE, alone_in, run_file
from penstock.errors import EngineError, InputError
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


@pytest.mark.parametrize(
    ("other", "options", "differs"),
    [
        (topology(pool=2), RunOptions(), "'count' was 'reads words.out; pool 4; key word; 128 key groups', is "),
        (topology(name="tally"), RunOptions(), "'tally' was None, is 'reads words.out"),
        (topology(), RunOptions(mode="microbatch"), "mode was 'realtime', is 'microbatch'"),
        (topology(), RunOptions(source_slots=2), "source_slots was 1, is 2"),
    ],
)
def test_another_run_is_refused_with_what_differs(
    tmp_path: Path, other: Topology, options: RunOptions, differs: str
) -> None:
    run_file(tmp_path, topology(), RunOptions(), "a").write(tmp_path)
    with pytest.raises(InputError, match="holds another run, which cannot be carried on") as caught:
        run_file(tmp_path, other, options, "b")
    assert differs in str(caught.value)


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


def test_one_driver_at_a_time_works_in_a_folder(tmp_path: Path) -> None:
    """A service manager started a second one beside one that hung; both wrote segments and records."""
    busy = pytest.raises(EngineError, match=r"another driver is at work on this run")
    with alone_in(tmp_path), busy, alone_in(tmp_path):
        pass
    with alone_in(tmp_path):
        pass
