"""`penstock compare` with several traces, seeds or headrooms: what it writes, and how it answers what is wrong."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli.main import app

MODULE = """
from penstock.topology import Topology

topology = Topology("mine", pool=6)
topology.operator("clean", str.strip, inputs=topology.source("lines"), execution_time_ms=20.0)
"""
SWEEP = ["compare", "my_app:topology", "--traces", "a.csv,b.csv", "--policies", "psps,static:2", "--td", "5"]


@pytest.fixture(autouse=True)
def user_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", str(tmp_path))])
    (tmp_path / "my_app.py").write_text(MODULE)
    (tmp_path / "a.csv").write_text("time_s,rate\n0,20\n10,120\n20,40\n")
    (tmp_path / "b.csv").write_text("time_s,rate\n0,60\n10,60\n20,60\n")
    yield tmp_path
    sys.modules.pop("my_app", None)


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, [*arguments, "--jobs", "1"])
    return result.exit_code, " ".join(result.output.split())


def test_a_sweep_is_told_written_and_resumed(user_folder: Path) -> None:
    asked = [*SWEEP, "--sweep", "--factors", "1,2", "--late", "0.05", "--resume", "kept.jsonl", "--json", "sweep.json"]
    code, said = run(*asked, "--html", "sweep.html")
    assert (code, "keeps the promise (at most 5 % late)" in said, "report: sweep.html" in said) == (0, True, True)
    found = json.loads((user_folder / "sweep.json").read_text())
    assert (len(found["points"]), found["settings"]["late"]) == (2 * (2 * 2 + 1), 0.05)
    assert "What the promise costs" in (user_folder / "sweep.html").read_text()
    kept = (user_folder / "kept.jsonl").read_text()
    assert run(*asked)[0] == 0
    assert (user_folder / "kept.jsonl").read_text() == kept
    assert json.loads((user_folder / "sweep.json").read_text()) == found


def test_without_a_sweep_policies_have_no_headroom(user_folder: Path) -> None:
    assert run(*SWEEP, "--seeds", "2", "--json", "sweep.json")[0] == 0
    found = json.loads((user_folder / "sweep.json").read_text())
    assert {one["factor"] for one in found["points"]} == {1.0}
    assert {one["seed"] for one in found["points"]} == {0, 1}


def test_several_rates_and_kinds_of_arrivals_in_one_go_and_resumed(user_folder: Path) -> None:
    """Each was a command of its own, and so were its table and its file."""
    asked = [*SWEEP, "--rates", "20,80", "--arrivals", "poisson,even", "--resume", "kept.jsonl", "--json", "sweep.json"]
    assert run(*asked)[0] == 0
    found = json.loads((user_folder / "sweep.json").read_text())
    names = [f"{trace}, {rate}/s, {kind}" for trace in "ab" for rate in (20, 80) for kind in ("poisson", "even")]
    assert list(found["bound"]) == names
    traces = found["settings"]["traces"]
    assert (traces["a, 80/s, even"]["mean"], traces["a, 80/s, even"]["arrivals"]) == (pytest.approx(80.0), "even")
    kept = (user_folder / "kept.jsonl").read_text()
    assert run(*asked)[0] == 0
    assert (user_folder / "kept.jsonl").read_text() == kept
    assert run(*asked[:-4], "--arrivals", "even,poisson", "--resume", "kept.jsonl")[0] == 2  # another sweep


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--rates", "20,many"], "--rates: must be numbers separated by commas; got '20,many'"),
        (["--rates", "20", "--mean-rate", "5"], "give one of --rates, --mean-rate and --rate"),
        (["--arrivals", "even,daily"], "no such name 'daily'"),
        (["--trace", "a.csv"], "give one of --traces, --trace and --rate"),
        (["--factors", "1,much"], "--factors: must be numbers separated by commas; got '1,much'"),
        (["--store", "runs.db"], "--store: a sweep keeps no intervals"),
        (["--late", "0"], "late must be above 0; got 0.0"),
    ],
)
def test_what_is_wrong_is_said(more: list[str], said: str) -> None:
    code, output = run(*SWEEP, *more)
    assert (code, said in output) == (2, True), output


def test_options_of_a_sweep_need_one() -> None:
    code, output = run("compare", "my_app:topology", "--trace", "a.csv", "--resume", "kept.jsonl")
    assert (code, "--resume and --factors belong to --sweep" in output) == (2, True)
