"""`penstock cluster`: Spark workers on this machine that stay until they are stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from penstock.cli import options as given
from penstock.cli.console import clear_errors, console, write_text

cluster = typer.Typer(no_args_is_help=True, help="Spark workers on this machine that stay until they are stopped.")

Folder = Annotated[
    Path | None, typer.Option(help="Where its state and logs are; penstock/cluster in the user's state folder.")
]


@cluster.command()
def start(
    workers: Annotated[int, typer.Option(help="How many.")] = 2,
    cores: Annotated[int, typer.Option(help="Slots that each offers to Spark; a replica takes one.")] = 16,
    memory_mb: Annotated[int, typer.Option(help="Memory that each offers to Spark.")] = 1024,
    folder: Folder = None,
) -> None:
    """Start a Spark Master and Workers; they go on when this command has ended."""
    with clear_errors():
        from penstock.engine.session import check_java
        from penstock.infra.standalone import StandaloneOptions

        options = StandaloneOptions(cores=cores, memory_mb=memory_mb)
        check_java()
        state = _cluster(folder).start(workers, options)
        told = f"{workers} worker{'s' if workers != 1 else ''} with {cores} cores each; its page: {state.web_url}"
        console.print(f"{state.url}: {told}", highlight=False, soft_wrap=True)
        settings = f"--properties-file {state.settings_file}"  # has the secret
        console.print(f"use it with: penstock run … --cluster {state.url} {settings}", highlight=False, soft_wrap=True)
        where = f" --folder {folder}" if folder else ""
        console.print(f"stop it with: penstock cluster stop{where}", highlight=False, soft_wrap=True)


@cluster.command()
def status(folder: Folder = None, json_file: given.JsonFile = None) -> None:
    """Show Master, workers and applications; ends with 1 if none was started or some process has died."""
    import json

    with clear_errors():
        found = _cluster(folder).status()
        if json_file is not None:
            write_text(json_file, json.dumps(found, indent=2) + "\n")
        elif found is None:
            console.print("no cluster runs", highlight=False)
        else:
            _show(found)
    if found is None or not found["whole"]:
        raise typer.Exit(1)


@cluster.command()
def stop(folder: Folder = None) -> None:
    """Stop exactly the processes that were started."""
    with clear_errors():
        done = _cluster(folder).stop()
        if done is None:
            console.print("no cluster runs", highlight=False)
            return
        before = f"; had ended before: {', '.join(done.before)}" if done.before else ""
        console.print(f"{done.ended} process{'es' if done.ended != 1 else ''} stopped{before}", highlight=False)


def _cluster(folder: Path | None) -> Any:
    from penstock.infra.lasting import LastingCluster, default_folder

    return LastingCluster(folder or default_folder())


def _show(found: dict[str, Any]) -> None:
    master = found["master"]
    died = "has died" if not master["runs"] else "does not answer" if not master["answers"] else "runs"
    said = f"{found['url']}: the Master {died} (process {master['pid']}), started {_age(found['age_s'])} ago"
    console.print(said, highlight=False, soft_wrap=True)
    table = Table(header_style="bold")
    for name in ("worker", "process", "state"):
        table.add_column(name)
    table.add_column("cores used", justify="right")
    for one in found["workers"]:
        process = f"{one['pid']}" if one["runs"] else f"{one['pid']} has died"
        table.add_row(one["name"], process, one["state"].lower(), f"{one['cores_used']} of {one['cores']}")
    console.print(table)
    names = ", ".join(f"{one['name']} ({one['id']}, {one['cores']} cores)" for one in found["applications"])
    console.print(f"applications: {names or 'none'}", highlight=False, soft_wrap=True)


def _age(seconds: float) -> str:
    """How long, in words.

    >>> _age(42.3), _age(150), _age(7300)
    ('42 s', '2 min', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = int(seconds // 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
