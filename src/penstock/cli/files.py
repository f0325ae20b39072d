"""Writing what a command leaves behind."""

from __future__ import annotations

import sys
from pathlib import Path

from penstock.errors import InputError


def write_text(path: Path, text: str) -> None:
    """Write to a file, or to the screen where the path is `-`; folders above it are made."""
    if str(path) == "-":
        sys.stdout.write(text)
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"file '{path}': cannot be written; {error.strerror or error}") from error
