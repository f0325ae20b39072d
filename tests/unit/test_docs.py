"""The documents say what is true: their Python runs, up to where Spark would start, and their links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from ast import literal_eval
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from penstock.cli.main import app
from penstock.forecast.registry import FORECASTERS

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "penstock"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
EXAMPLES = sorted(ROOT.glob("examples/*.py"))
FOR_USERS = [page for page in PAGES if page.name not in ("CHANGELOG.md", "CONTRIBUTING.md", "design.md")]
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


def test_the_guide_builds_its_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # the run under a policy has a store there
    names = execute(ROOT / "docs" / "guide.md")
    assert names["run"].active["score"] == (0, 3)
    assert names["spiky"].total == 12_000
    assert capsys.readouterr().out.startswith("{'lines': 0}\n")  # what the counters show before the start
    assert names["sized"].run.topology is names["topology"]
    names["sized"].store.close()


def test_the_guide_tries_its_policy_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    names = execute(ROOT / "docs" / "guide.md")
    assert names["alone"].events == 12_000
    assert {result.policy for result in names["ranking"]} == {"psps", "static:peak", "Relaxed"}
    assert names["best"].meets_target
    names["sized"].store.close()


@pytest.mark.parametrize("page", [*FOR_USERS, *EXAMPLES], ids=lambda page: page.name)
def test_what_users_read_goes_through_the_door(page: Path) -> None:
    """The engine and the command line are the house's own; what a program needs of them is in `penstock`."""
    assert not re.findall(r"penstock\.(?:engine|cli)\b.*", page.read_text())


@pytest.mark.parametrize("page", EXAMPLES, ids=lambda page: page.name)
def test_an_example_imports_from_penstock_alone(page: Path) -> None:
    assert not re.findall(r"^(?:from|import) penstock\..*", page.read_text(), re.MULTILINE)


def test_the_site_is_built_whole(tmp_path: Path) -> None:
    """Strictly, so that a page that is missing or a link that leads nowhere ends it; nothing comes from elsewhere."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = {page.stem: page.read_text() for page in tmp_path.glob("*.html")}
    assert pages.keys() >= {page.stem for page in ROOT.glob("docs/*.md")} | {"index", "contributing", "changes", "data"}
    loaded = r'<(?:script|link|img|iframe)[^>]+(?:src|href)="https?:[^"]+"'
    assert not [tag for page in pages.values() for tag in re.findall(loaded, page)]
    assert "300 questions, 300 statements stored" in pages["examples"]  # the program itself is on the page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    local = [link for link in _LINK.findall(page.read_text()) if not re.match(r"\w+:", link)]
    missing = [link for link in local if not (page.parent / link.partition("#")[0]).exists()]
    assert not missing


@pytest.mark.parametrize("page", ["docs/design.md", "CONTRIBUTING.md"])
def test_the_files_that_a_page_names_are_there(page: str) -> None:
    named = re.findall(r"`([\w/]+/(?:\w+\.py)?)`", (ROOT / page).read_text())
    places = (ROOT, ROOT / "src", PACKAGE, PACKAGE / "engine", PACKAGE / "simulator")
    assert len(named) > 20
    assert not [name for name in named if not any((place / name).exists() for place in places)]


def test_the_design_names_every_module_of_the_engine() -> None:
    text = (ROOT / "docs" / "design.md").read_text()
    modules = [file for file in (PACKAGE / "engine").rglob("*.py") if file.name != "__init__.py"]
    assert not [file.stem for file in modules if not re.search(rf"[`/]{file.stem}(?:\.py)?`", text)]


def test_every_word_of_the_glossary_is_used_in_the_code() -> None:
    rows = re.findall(r"^\| ([a-z][^|]*) \|", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)
    words = {word.removeprefix("its ") for row in rows if row != "word" for word in row.split(", ")}
    code = "\n".join(file.read_text() for file in PACKAGE.rglob("*.py"))
    as_written = {word: re.sub("[ -]", "[ _-]?", word) for word in words}
    unused = [word for word, one in as_written.items() if not re.search(rf"(?<![a-z]){one}s?(?![a-z])", code, re.I)]
    assert len(words) > 80
    assert not unused


@pytest.mark.parametrize(
    "page",
    ["README.md", "docs/simulator.md", "docs/guide.md", "docs/attach.md", "docs/training.md", "docs/forecasting.md"],
)
def test_the_options_in_a_page_are_those_of_the_command_line(page: str) -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    nested = [one for command in commands.values() for one in getattr(command, "commands", {}).values()]
    several = [*commands.values(), *nested]
    parameters = [parameter for command in several for parameter in command.params]
    known = {option for one in parameters for option in (*one.opts, *one.secondary_opts)}
    others = r"spark-submit --[a-z-]+|`python [^`]+`"  # options of Spark's, and of benchmarks and experiments
    text = re.sub(others, "", (ROOT / page).read_text())
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))
    assert named <= known
    assert commands.keys() == {
        "run",
        "simulate",
        "compare",
        "report",
        "explain",
        "ui",
        "ctl",
        "config",
        "demo",
        "train",
        "backtest",
        "advise",
        "cluster",
    }


def test_benchmarks_and_experiments_have_the_options_that_the_readme_gives_them() -> None:
    commands = re.findall(r"`python (?:-m )?(benchmarks/\w+\.py|experiments)([^`]*)`", (ROOT / "README.md").read_text())
    assert len(commands) > 10
    for program, rest in commands:
        source = ROOT / (program if program.endswith(".py") else f"{program}/__main__.py")
        assert all(f'"{option}"' in source.read_text() for option in re.findall(r"--[a-z-]+", rest)), program


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


ROOMS = ("engine", "driver", "plan", "worker", "direct", "online", "pull", "protocol")
IMPORT = re.compile(r"^\s*from penstock\.engine(?:\.(\w+))?\S* import", re.MULTILINE)


def room(name: str | None) -> str:
    return name if name in ROOMS else "engine"


def test_the_rooms_of_the_engine_import_each_other_as_the_design_says() -> None:
    """Its table had been true when it was made."""
    engine, counted = ROOT / "src" / "penstock" / "engine", Counter[tuple[str, str]]()
    for file in engine.rglob("*.py"):
        mine = room(file.relative_to(engine).parts[0])
        counted.update((mine, theirs) for theirs in map(room, IMPORT.findall(file.read_text())) if theirs != mine)
    table = re.findall(r"^\| `(\w+)/` \|((?: *\d* *\|){8})$", (ROOT / "docs" / "design.md").read_text(), re.MULTILINE)
    told = {
        (row, column): int(cell)
        for row, cells in table
        for column, cell in zip(ROOMS, cells.split("|"), strict=False)
        if cell.strip()
    }
    assert told == counted
