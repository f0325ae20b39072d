"""The terminal, and how mistakes are told there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.markup import escape

from penstock.errors import PenstockError

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
