"""`penstock report`: a page from a store, and what it says where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.metrics.store import Store


def penstock(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_simulated_run_is_drawn_with_its_timetables() -> None:
    """Only the page of a live run had them."""
    options = ["--rate", "40", "--duration", "60", "--td", "2", "--policy", "cba", "--forecaster", "last_value"]
    assert penstock("simulate", "twitter", *options, "--store", "runs.db").exit_code == 0
    done = penstock("report", "runs.db")
    assert done.exit_code == 0, done.output
    assert "intervals of twitter under cba: report.html" in done.output
    page = Path("report.html").read_text(encoding="utf-8")
    assert "The policy planned" in page
    assert page.count("data:image") == 5  # the scores among them


def test_what_cannot_be_drawn_is_said() -> None:
    Store("empty.db").close()
    Path("notes.txt").write_text("no store" * 200)
    for place, said in (
        ("none.db", "store 'none.db': no such file"),
        ("empty.db", "store 'empty.db': must have a run; has none"),
        ("notes.txt", "store 'notes.txt': cannot be opened; file is not a database"),
    ):
        done = penstock("report", place)
        assert (done.exit_code, said in done.output) == (2, True), done.output
    assert not Path("report.html").exists()
