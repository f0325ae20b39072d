"""The wheel, built and installed outside the checkout: what a user gets who never saw the repository."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.waiting import LONG_S

ROOT = Path(__file__).resolve().parents[2]


class Installed:
    """`penstock` of an environment of its own, which has all other packages from the one that runs the tests."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._programs = folder / "venv" / "bin"
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
        self._run(*pip, "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
        (self.wheel,) = folder.glob("penstock-*.whl")
        self._run(sys.executable, "-m", "venv", "--without-pip", str(folder / "venv"))
        self._others()
        into = ["--python", str(self._programs / "python")]
        self._run(*pip, *into, "install", "--no-deps", "--no-index", str(self.wheel))

    def _others(self) -> None:
        """Own packages come first; a path in a .pth file does not bring an editable install with it."""
        (packages,) = self._folder.glob("venv/lib/python*/site-packages")
        (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def python(self, code: str) -> str:
        """What a line of Python prints."""
        return self._run(str(self._programs / "python"), "-c", code)

    def penstock(self, *arguments: str) -> str:
        """What the command prints."""
        return self._run(str(self._programs / "penstock"), *arguments)

    def _run(self, *command: str) -> str:
        environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PENSTOCK_DATA")}
        done = subprocess.run(
            command, cwd=self._folder, env=environment, capture_output=True, text=True, timeout=2 * LONG_S
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("wheel"))


def test_it_is_not_the_checkout(installed: Installed) -> None:
    where = installed.python("import penstock; print(penstock.__file__)")
    assert where.startswith(str(installed.wheel.parent))
    assert installed.python("from penstock.workload import data_folder; print(data_folder('traces'))") == "None\n"


def test_commands_and_pages_work(installed: Installed) -> None:
    assert "simulate" in installed.penstock("--help")
    brief = ("--rate", "60", "--duration", "120", "--td", "30")
    installed.penstock("simulate", "dns", *brief, "--store", "run.db", "--json", "simulated.json")
    installed.penstock("report", "run.db", "--html", "run.html")
    installed.penstock("compare", "twitter", *brief, "--policies", "psps,static:2", "--html", "arena.html")
    pages = "from penstock.ui.app import STATIC; print(sorted(one.suffix for one in STATIC.glob('run.*')))"
    assert installed.python(pages) == "['.html', '.js']\n"
    folder = installed.wheel.parent
    assert json.loads((folder / "simulated.json").read_text())[0]["events"] == 7200
    assert "data:image" in (folder / "run.html").read_text()
    assert "static:2" in (folder / "arena.html").read_text()


def test_the_demo_runs_on_a_made_trace(installed: Installed) -> None:
    told = installed.penstock("demo", "--seconds", "5", "--json", "demo.json")
    assert "(made), 7200 s in 5 s" in told
    found = json.loads((installed.wheel.parent / "demo.json").read_text())
    assert found["events"] == found["processed"] == 590
