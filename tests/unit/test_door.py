"""`import penstock`: everything that a program needs, and nothing before it is used."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import penstock

ROOT = Path(__file__).resolve().parents[2]


def test_all_names_are_there_and_documented() -> None:
    for name in penstock.__all__:
        assert getattr(penstock, name).__doc__, name
    assert set(dir(penstock)) == set(penstock.__all__) == set(penstock._PLACE_OF)


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match=r"^module 'penstock' has no attribute 'Topologie'$"):
        _ = penstock.Topologie


@pytest.mark.parametrize(
    ("used", "heavy"),
    [
        ("penstock", {"numba", "numpy", "pyspark", "py4j", "pandas", "matplotlib", "sqlalchemy", "typer"}),
        ("penstock.Topology, penstock.InputError, penstock.TraceSource", {"pyspark", "py4j", "matplotlib", "typer"}),
    ],
)
def test_nothing_is_loaded_before_it_is_used(used: str, heavy: set[str]) -> None:
    code = f"import sys, penstock; {used}; print(*sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_benchmarks_and_experiments_use_the_library_not_the_command_line() -> None:
    programs = [
        file for folder in ("benchmarks", "experiments", "examples") for file in (ROOT / folder).glob("**/*.py")
    ]
    assert len(programs) > 20
    assert not [file.name for file in programs if re.search(r"(from|import) penstock\.cli", file.read_text())]
