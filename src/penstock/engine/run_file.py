"""What a new driver needs to carry a run on, in the run's folder: `run.json`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from penstock.common.filelock import hold
from penstock.common.files import sealed, unsealed, write_whole
from penstock.engine.options import RunOptions
from penstock.errors import EngineError, InputError
from penstock.topology import Topology

FILE = "run.json"
VERSION = 2  # of what is in a run's folder


class RunFile(msgspec.Struct, frozen=True):
    """The run's name, when its sources began, how often its query was started, and what was run."""

    id: str
    mode: str
    source_slots: int
    topology: dict[str, str]  # by operator or source: what of it must stay the same
    epoch_s: float | None = None
    generation: int = -1  # the last one that was started
    version: int = VERSION

    def write(self, folder: Path) -> None:
        """Have it on disk when this returns."""
        write_whole(folder / FILE, sealed(msgspec.json.format(msgspec.json.encode(self))))


class _Versioned(msgspec.Struct):
    version: int = 1  # of Penstock 0.1, which did not write it


def describe(topology: Topology) -> dict[str, str]:
    """What of a topology must stay the same for a run to be carried on.

    >>> topology = Topology("words")
    >>> count = topology.operator("count", lambda e, state: e, inputs=topology.source("words"), key="word")
    >>> describe(topology)
    {'words': 'source', 'count': 'reads words.out; pool 4; key word; 128 key groups'}
    """
    described = dict.fromkeys(topology.sources, "source")
    for name, operator in topology.operators.items():
        parts = [f"reads {', '.join(map(str, operator.inputs))}", f"pool {operator.pool}"]
        if operator.key is not None:
            parts.append(f"key {operator.key if isinstance(operator.key, str) else 'by a function'}")
        if operator.state is not None:
            parts.append(f"{operator.state.groups} key groups")
        described[name] = "; ".join(parts)
    return described


def run_file(folder: Path | None, topology: Topology, options: RunOptions, new_id: str) -> RunFile:
    """The run that the folder holds, if there is one; otherwise a new one. Raises if it is another run's folder."""
    mine = RunFile(new_id, options.mode, options.source_slots, describe(topology))
    path = (folder or Path()) / FILE
    if folder is None or not path.is_file():
        return mine
    try:
        text = unsealed(path.read_bytes())
        version = msgspec.json.decode(text, type=_Versioned).version
        if version != VERSION:
            raise InputError(
                f"{folder}: holds a run of format {version}; this version of Penstock carries on format {VERSION}: "
                "finish it with the version that began it, or begin anew in another folder"
            )
        held = msgspec.json.decode(text, type=RunFile)
    except (msgspec.MsgspecError, ValueError) as error:
        raise InputError(f"{path}: does not say which run this is: {error}") from error
    differences = [
        f"{what} was {was!r}, is {now!r}"
        for what, was, now in (
            ("mode", held.mode, mine.mode),
            ("source_slots", held.source_slots, mine.source_slots),
            *((repr(n), held.topology.get(n), mine.topology.get(n)) for n in held.topology | mine.topology),
        )
        if was != now
    ]
    if differences:
        raise InputError(f"{folder}: holds another run, which cannot be carried on: {'; '.join(differences)}")
    return held


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keep other drivers out of the folder; it is free again when this one ends, however it ends."""
    with hold(folder / "lock") as held:
        if not held:
            raise EngineError(f"{folder}: another driver is at work on this run; one that hangs must be stopped first")
        yield
