"""What a job ships: small operators in the program, large ones as files that Spark takes to each worker once."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark
import pytest

from penstock.engine.options import RunOptions
from penstock.engine.plan.job import LARGE_BYTES, Job
from penstock.engine.plan.layout import full_layout
from penstock.engine.plan.program import DriverAddress, Program
from penstock.sources import TraceSource
from penstock.topology import Topology
from penstock.workload import constant


class Large:
    def __init__(self, letter: bytes) -> None:
        self.table = letter * (2 * LARGE_BYTES)

    def process(self, event: Any) -> Any:
        return event


@pytest.fixture
def added() -> list[Path]:
    """The files that Spark was given."""
    return []


@pytest.fixture
def program(tmp_path: Path, added: list[Path], monkeypatch: pytest.MonkeyPatch) -> Program:
    topology = Topology("t")
    small = topology.operator("small", len, inputs=topology.source("s"))
    first = topology.operator("first", Large(b"a"), inputs=small)
    topology.operator("second", Large(b"b"), inputs=first)
    (tmp_path / "session").mkdir()
    context = SimpleNamespace(addFile=lambda path: added.append(Path(path)), _temp_dir=str(tmp_path / "session"))
    spark: Any = SimpleNamespace(sparkContext=context)
    source = TraceSource(constant(10, duration_s=1), [1])
    job = Job("run", topology, {"s": source}, RunOptions(), spark, tmp_path / "run")
    monkeypatch.setattr(pyspark.SparkFiles, "get", lambda name: str(tmp_path / "session" / name))
    made = [job.program(full_layout(topology, 1), DriverAddress("h", 1, b"", 1.0), {}) for _ in range(2)]
    return made[1]


def test_what_is_large_is_given_to_spark_once_and_is_not_in_the_program(program: Program, added: list[Path]) -> None:
    """Every task got every event of a file, and kept it: a restart of many replicas took in gigabytes."""
    assert len(pickle.dumps(program)) < LARGE_BYTES
    assert len(added) == len({one.name for one in added}) == 2
    assert {one.name for one in added} == set(program.files.values())
    assert {one.stat().st_mode & 0o777 for one in added} == {0o600}


def test_whoever_needs_it_reads_its_own(program: Program, added: list[Path]) -> None:
    by_name = {name: path for name, file in program.files.items() for path in added if path.name == file}
    by_name["second"].unlink()
    operator, _ = program.operator("first")
    assert operator.run.table[:1] == b"a"
    assert program.operator("small")[0].run is len
    assert program.source("s") is not None
    with pytest.raises(FileNotFoundError):
        program.operator("second")
