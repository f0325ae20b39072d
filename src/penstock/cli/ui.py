"""`penstock ui`: the runs of a store in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.console import clear_errors, console
from penstock.errors import InputError
from penstock.ui.listen import Listen, parse_listen

Cert = Annotated[Path | None, typer.Option(help="A certificate, for TLS.")]
Key = Annotated[Path | None, typer.Option(help="The certificate's key.")]
InsecureListen = Annotated[
    bool, typer.Option("--insecure-listen", help="Let other machines read it without TLS, as anybody there can.")
]


def ui(
    store: Annotated[str, typer.Argument(help="The store of the runs: a file, or a database URL.")],
    listen: Annotated[str, typer.Option(metavar="[HOST:]PORT", help="Where; this machine only by default.")] = "8470",
    cert: Cert = None,
    key: Key = None,
    insecure_listen: InsecureListen = False,
) -> None:
    """Show all runs of a store in a browser: that go on, have ended, or were simulated."""
    with clear_errors():
        from penstock.ui.server import serve  # the server takes its time to load

        where = parse_listen(listen, cert=cert, key=key, insecure=insecure_listen)
        serve(store, where, lambda url: console.print(f"dashboard: {url}", highlight=False, soft_wrap=True))


def given_listen(text: str | None, cert: Path | None, key: Path | None, insecure: bool) -> Listen | None:
    """Where a run is to be shown, by the options of `penstock run`; None where none was given."""
    if text is not None:
        return parse_listen(text, cert=cert, key=key, insecure=insecure, what="--ui")
    if cert or key or insecure:
        raise InputError("--cert, --key and --insecure-listen are for --ui [HOST:]PORT")
    return None
