"""The terminal, how mistakes are told there, and files that commands write."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape

from penstock.errors import InputError, PenstockError

console = Console(stderr=True)


@contextmanager
def clear_errors() -> Iterator[None]:
    """A mistake of the user's is one sentence, not a stack trace."""
    try:
        yield
    except PenstockError as error:
        console.print(f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        console.print("stopped")
        raise typer.Exit(130) from None


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
