"""The folder of a run: temporary or lasting, for one driver at a time, private."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.engine.options import RunOptions
from penstock.engine.run_folder import RunFolder
from penstock.errors import EngineError
from penstock.topology import Topology


def folder_of(path: Path | None = None) -> RunFolder:
    topology = Topology("t")
    topology.operator("o", print, inputs=topology.source("s"))
    return RunFolder(topology, RunOptions(folder=path))


@pytest.mark.parametrize("keep", [False, True])
def test_a_temporary_one_goes_with_the_run_unless_its_log_tells_why_it_failed(keep: bool, tmp_path: Path) -> None:
    home = folder_of()
    assert home.lasting is None
    path = home.make()
    home.enter()
    (path / "spark.log").touch()
    home.leave(keep=keep)
    assert path.exists() is keep
    home.leave(keep=False)  # it was only looked at
    assert not path.exists()


def test_one_that_the_user_named_stays(tmp_path: Path) -> None:
    home = folder_of(tmp_path / "run")
    home.make()
    home.enter()
    home.leave(keep=False)
    assert (tmp_path / "run").exists()


def test_one_that_was_only_looked_at_is_not_made(tmp_path: Path) -> None:
    home = folder_of(tmp_path / "run")
    home.leave(keep=False)
    assert (home.carried_on, home.failure, list(tmp_path.iterdir())) == (0, None, [])


def test_a_second_driver_is_kept_out_until_the_first_leaves(tmp_path: Path) -> None:
    first, second = folder_of(tmp_path), folder_of(tmp_path)
    first.make()
    first.enter()
    second.make()
    with pytest.raises(EngineError, match="another driver is at work on this run"):
        second.enter()
    first.leave(keep=False)
    second.enter()
    second.leave(keep=False)
