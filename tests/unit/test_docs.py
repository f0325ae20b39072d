"""The documents say what is true: their Python runs, up to where Spark would start, and their links lead somewhere."""

from __future__ import annotations

import re
from ast import literal_eval
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from penstock.cli.main import app
from penstock.forecast.registry import FORECASTERS

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
NEEDS_SPARK = "<!-- needs Spark -->"

_BLOCK = re.compile(rf"^(?:{NEEDS_SPARK}\n)?```python\n.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def blocks(page: Path) -> list[tuple[str, bool]]:
    """The page's Python, and whether it may be executed here; line numbers are those of the page."""
    text = page.read_text()
    found = []
    for match in _BLOCK.finditer(text):
        fence = match[0].index("```python\n") + len("```python\n")
        lines_before = text.count("\n", 0, match.start() + fence)
        found.append(("\n" * lines_before + match[0][fence:-3], NEEDS_SPARK not in match[0]))
    return found


def execute(page: Path) -> dict[str, Any]:
    """Run a page's blocks one after another, as a module that is not the main one."""
    names: dict[str, Any] = {"__name__": f"docs_{page.stem.lower()}"}
    for source, runnable in blocks(page):
        code = compile(source, str(page), "exec")
        if runnable:
            exec(code, names)
    return names


def test_the_readme_builds_its_run() -> None:
    names = execute(ROOT / "README.md")
    assert names["run"].topology is names["topology"]
    assert names["run"].active == {"clean": (0,), "dispatch": (0,), "rate": (0,), "store": (0,)}
    assert names["source"].total == 12_000
    assert names["run"].epoch_s is None  # not started


def test_the_functions_of_the_readme_do_what_they_say() -> None:
    names = execute(ROOT / "README.md")
    question, statement = (names["dispatch"](names["clean"](tweet)) for tweet in names["payloads"])
    assert (question.stream, statement.stream) == ("questions", "statements")
    assert names["rate"](question.event) == {"text": "is the bridge open?", "urgent": False}


def test_the_guide_builds_its_run(capsys: pytest.CaptureFixture[str]) -> None:
    names = execute(ROOT / "docs" / "guide.md")
    assert names["run"].active["score"] == (0, 3)
    assert names["spiky"].total == 12_000
    assert capsys.readouterr().out.startswith("{'lines': 0}\n")  # what the counters show before the start


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    local = [link for link in _LINK.findall(page.read_text()) if not re.match(r"\w+:", link)]
    missing = [link for link in local if not (page.parent / link.partition("#")[0]).exists()]
    assert not missing


@pytest.mark.parametrize(
    "page", ["README.md", "docs/simulator.md", "docs/guide.md", "docs/training.md", "docs/forecasting.md"]
)
def test_the_options_in_a_page_are_those_of_the_command_line(page: str) -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    nested = [one for command in commands.values() for one in getattr(command, "commands", {}).values()]
    several = [*commands.values(), *nested]
    known = {option for command in several for parameter in command.params for option in parameter.opts}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", (ROOT / page).read_text()))
    assert named <= known
    assert commands.keys() == {"run", "simulate", "compare", "report", "demo", "train", "backtest", "cluster"}


def test_the_page_on_the_simulator_does_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    names = execute(ROOT / "docs" / "simulator.md")
    *lines, ranking = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines} == {"psps", "keda", "static:peak"}
    assert set(literal_eval(ranking)) == {"HalfBusy", "psps", "static:peak"}
    assert names["knowledge"].is_file()


def test_the_page_on_training_does_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    execute(ROOT / "docs" / "training.md")
    assert capsys.readouterr().out == "drift [120.]\n[130. 140.]\n"


def test_the_page_on_forecasting_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    page = ROOT / "docs" / "forecasting.md"
    execute(page)
    said = re.findall(r"^print\(.*\)  # (.*)$", page.read_text(), re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == said
    rows = [line.split("|") for line in page.read_text().splitlines() if line.startswith("| `")]
    listed = {name: row[3] for row in rows for name in re.findall(r"`(\w+)`", row[1])}
    assert sorted(listed) == list(FORECASTERS.distinct)
    assert all(f"`{option}`" in listed[name] for name in listed for option in _shown(name))


def _shown(name: str) -> set[str]:
    """The options that a user sets; those of the run that `trained` follows are set by the loop."""
    return set(FORECASTERS.options(name)) - {"series", "run"}
