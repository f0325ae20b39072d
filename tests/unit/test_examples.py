"""The example that needs no Spark prints what it says; all of them are what a user may write."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.examples import FOLDER, PROGRAMS, printed, promised


def test_the_arena_prints_what_it_says(tmp_path: Path) -> None:
    assert printed("arena", tmp_path) == promised("arena")


def test_the_arena_takes_a_trace_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "rates.csv").write_text("time_s,rate\n" + "".join(f"{second},20\n" for second in range(30)))
    lines = printed("arena", tmp_path, arguments=("rates.csv",))
    assert {line.split()[0] for line in lines} == {line.split()[0] for line in promised("arena")}
    assert all("on time" in line for line in lines)  # a steady trickle, for once


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_says_how_it_is_run_and_is_short(name: str) -> None:
    text = (FOLDER / f"{name}.py").read_text()
    assert promised(name)
    assert len(text.splitlines()) <= 70
    assert f'--8<-- "examples/{name}.py"' in (FOLDER.parent / "docs" / "examples.md").read_text()


def test_the_policy_takes_ten_lines() -> None:
    tree = ast.parse((FOLDER / "policy.py").read_text())
    (policy,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    plan = policy.body[-1]
    assert plan.end_lineno is not None
    assert plan.end_lineno - plan.lineno + 1 <= 10
