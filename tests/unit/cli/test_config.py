"""`penstock.toml`: options from a file, typed, with the nearest right key where one is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import Result
from typer.main import get_command
from typer.testing import CliRunner

from penstock.cli.config import read_config
from penstock.cli.main import app
from penstock.errors import InputError

RIGHT = """
[simulate]
topology = "dns"
rate = 20
duration = 20
policy = "static:2"
td = 5
pool = {parse = 4}
calendar = ["freeze daily 08:00-10:00", "least parse=2 sat,sun 10:00-12:00"]

[run]
target-ms = 500
source = ["kafka://host/a", "kafka://host/b"]
sink = "postgresql://ann:sea@host/db"
insecure_listen = true
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PENSTOCK_CONFIG", raising=False)


def penstock(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def write(text: str, name: str = "penstock.toml") -> Path:
    Path(name).write_text(text)
    return Path(name)


def read(text: str) -> dict[str, dict[str, object]]:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    return {name: dict(options) for name, options in read_config(write(text), commands).commands.items()}


def test_options_are_read_under_the_names_of_their_parameters() -> None:
    found = read(RIGHT)
    assert found["run"] == {
        "target_ms": 500,
        "source": ["kafka://host/a", "kafka://host/b"],
        "sink": "postgresql://ann:sea@host/db",
        "insecure_listen": True,
    }
    assert found["simulate"]["pool"] == "parse=4"
    assert found["simulate"]["calendar"] == "freeze daily 08:00-10:00; least parse=2 sat,sun 10:00-12:00"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[run", "penstock.toml: must be a file in TOML"),
        ("[rnu]\ntd = 1", "penstock.toml, table: no such name 'rnu'"),
        ("run = 3", "penstock.toml: must be tables of options, one for each command; got run = 3"),
        ("[run]\npolcy = 'psps'", "did you mean 'policy'?"),
        ("[run]\ntd = 'one'", "penstock.toml: [run]: Expected `float`, got `str`, at `td`"),
        ("[run]\nslots = 2.5", "[run]: Expected `int`, got `float`, at `slots`"),
        ("[run]\nsource = 'kafka://host/a'", "[run]: Expected `array`, got `str`, at `source`"),
        ("[run]\ninsecure_listen = 1", "[run]: Expected `bool`, got `int`, at `insecure_listen`"),
        ("[cluster]\nworkers = 2", "penstock.toml, table: no such name 'cluster'"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        read(text)
    assert told in str(caught.value)


def test_a_command_takes_what_it_is_not_given_from_the_file() -> None:
    """The file names the application, and how long it is played; the command line goes before it."""
    write('[simulate]\ntopology = "dns"\nrate = 20\nduration = 20\npolicy = "static:2"\ntd = 5\n')
    done = penstock("simulate", "--json", "-")
    assert done.exit_code == 0, done.output
    assert '"policy": "static:2"' in done.stdout
    assert '"policy": "static:1"' in penstock("simulate", "--policy", "static:1", "--json", "-").stdout


def test_a_wrong_file_ends_every_command_with_a_sentence() -> None:
    write("[run]\npolcy = 'psps'")
    done = penstock("simulate", "dns")
    assert (done.exit_code, "did you mean 'policy'?" in " ".join(done.output.split())) == (2, True)


def test_the_environment_may_name_another(monkeypatch: pytest.MonkeyPatch) -> None:
    write("[run]\npolcy = 'psps'", "other.toml")
    monkeypatch.setenv("PENSTOCK_CONFIG", "other.toml")
    assert penstock("config", "check").exit_code == 2
    monkeypatch.setenv("PENSTOCK_CONFIG", "gone.toml")
    assert "gone.toml: must be a file in TOML" in " ".join(penstock("config", "check").output.split())


def test_check_and_show() -> None:
    assert "no penstock.toml in this folder" in " ".join(penstock("config", "check").output.split())
    write(RIGHT)
    assert penstock("config", "check").output == "penstock.toml: right; has options of simulate (7), run (4)\n"
    shown = penstock("config", "show").stdout.splitlines()
    assert "* target_ms = 500" in shown
    assert "  late = 0.01" in shown
    assert "* sink = postgresql://ann:***@host/db" in shown
    assert "* topology = dns" in shown
    assert not [line for line in shown if "sea" in line]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("calendar = ['freeze daily 08:00-09:00 Europe/Berlni']", "'Europe/Berlni'"),
        ("policy = 'pspss:use_forecast'", "policy: no such name 'pspss'"),
        ("canary = 'penstok:minutes=5'", "did you mean 'penstock'?"),
        ("shadow = 'cbaa:12'", "did you mean 'cba'?"),
        ("forecaster = 'driftt:5'", "did you mean 'drift'?"),
    ],
)
def test_check_looks_at_words_too(line: str, sentence: str) -> None:
    """A calendar with a misspelt city was right until the night on which the run was started again."""
    write(f"[run]\n{line}\n")
    done = penstock("config", "check")
    told = " ".join(done.output.split())
    assert (done.exit_code, "penstock.toml: [run]: " in told, sentence in told) == (2, True, True), told


def test_what_attach_takes_is_checked_and_shown_too() -> None:
    write("[attach]\nexecutors = '1..4'\nlate = 0.02\n")
    assert penstock("config", "check").output == "penstock.toml: right; has options of attach (2)\n"
    shown = penstock("config", "show").stdout.splitlines()
    assert ("* late = 0.02" in shown, "  policy = " in shown) == (True, True)
    write("[attach]\nexecuters = 3\n")
    assert "did you mean 'executors'?" in " ".join(penstock("config", "check").output.split())


def test_a_table_for_attach_disturbs_no_command() -> None:
    write("[attach]\nexecutors = 3\n[simulate]\nrate = 20\nduration = 10\n")
    assert penstock("simulate", "dns", "--json", "-").exit_code == 0
