"""The programs in `examples/`, run as a user runs them, and what each says that it prints."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.waiting import LONG_S

FOLDER = Path(__file__).parents[1] / "examples"
PROGRAMS = sorted(file.stem for file in FOLDER.glob("*.py"))


def printed(name: str, folder: Path, arguments: tuple[str, ...] = (), timeout_s: float = LONG_S) -> list[str]:
    """The lines that it prints, in a process of its own, from another folder."""
    paths = (str(FOLDER.parent / "src"), os.environ.get("PYTHONPATH"))
    here = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, str(FOLDER / f"{name}.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=here, timeout=timeout_s, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


def promised(name: str) -> list[str]:
    """The lines that its docstring shows, the command before them left out."""
    text = ast.get_docstring(ast.parse((FOLDER / f"{name}.py").read_text())) or ""
    command, *lines = re.findall(r"^    (.*\S)$", text, re.MULTILINE)
    assert command.startswith(f"python examples/{name}.py")
    return lines
