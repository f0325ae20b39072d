from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments import catalogue
from experiments.__main__ import main
from experiments.experiment import Claim, Direction, Experiment


@pytest.fixture
def one_tiny(monkeypatch: pytest.MonkeyPatch, tiny: Experiment) -> Experiment:
    directions = (
        Direction("two saves less", (Claim("saved", "two", "one"),)),
        Direction("later is best", (Claim("late", "later", "one"),)),
    )
    experiment = Experiment(**{**vars(tiny), "directions": directions, "note": "as <small> as can be"})
    monkeypatch.setattr(catalogue, "EXPERIMENTS", {"tiny": experiment})
    return experiment


@pytest.mark.usefixtures("one_tiny")
def test_a_page_and_a_file_for_programs(tmp_path: Path) -> None:
    html, figures = tmp_path / "new" / "e.html", tmp_path / "e.json"
    assert main(["--html", str(html), "--json", str(figures), "--workers", "1", "--made"]) == 0
    found = json.loads(figures.read_text())
    assert [one["holds"] for one in found["directions"]] == [True, None]
    (one,) = found["experiments"]
    assert (one["seeds"], one["inputs"]) == (2, {"tiny": "made"})
    assert one["cases"][0]["paper"] == {"saved": 0.6, "latency_ms": 100.0}
    assert len(one["cases"][0]["ours"]["saved"]["by_seed"]) == 2
    assert one["cases"][2]["missing"] == "policy 'hope' is not there yet"
    text = html.read_text()
    assert "Small &lt;things&gt;" in text
    assert "as &lt;small&gt; as can be" in text
    assert "paper 0.6000" in text
    assert "policy &#39;hope&#39; is not there yet" in text
    assert "two saves less" in text


@pytest.mark.usefixtures("one_tiny")
def test_seeds_are_for_every_case(tmp_path: Path) -> None:
    figures = tmp_path / "e.json"
    options = ["--html", str(tmp_path / "e.html"), "--json", str(figures), "--workers", "1", "--seeds", "1"]
    assert main([*options, "--only", "tiny"]) == 0
    assert len(json.loads(figures.read_text())["experiments"][0]["cases"][0]["ours"]["saved"]["by_seed"]) == 1


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(catalogue.EXPERIMENTS)
    assert any(line.startswith("table-vii ") and line.endswith("Grouping") for line in lines)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--only", "table-99"], "table-99"),
        (["--seeds", "0"], "--seeds must be at least 1"),
        (["--workers", "-1"], "-1"),
    ],
)
def test_a_mistake_is_one_sentence(options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(options) == 2
    assert said in capsys.readouterr().err


@pytest.mark.usefixtures("one_tiny")
def test_a_file_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["--json", str(tmp_path / "file" / "e.json"), "--workers", "1", "--seeds", "1"]) == 2
    assert "cannot be written" in capsys.readouterr().err
