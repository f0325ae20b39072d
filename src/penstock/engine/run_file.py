"""What a new driver needs to carry a run on, in the run's folder: `run.json`."""

from __future__ import annotations

import threading
from collections.abc import Callable

import msgspec

from penstock.common.sealed_json import OtherVersion, from_json, to_json
from penstock.common.storage import Place, Storage, storage_at
from penstock.engine.options import RunOptions
from penstock.errors import InputError
from penstock.topology import Topology

FILE = "run.json"
VERSION = 2  # of what is in a run's folder
SOURCE = "a source"
SINK = "a sink that shows what is committed"


class RunFile(msgspec.Struct, frozen=True):
    """The run's name, when its sources began, how often its query was started, and what was run."""

    id: str
    mode: str
    source_slots: int
    topology: dict[str, str]  # by operator or source: what must stay the same, where anything must
    epoch_s: float | None = None
    generation: int = -1  # the last one that was started
    version: int = VERSION

    def write(self, place: Place) -> None:
        """Have it safe when this returns."""
        storage_at(place).write(FILE, to_json(self))


class KeptFile:
    """The file of a run at work, for a later driver of it; any thread may change it."""

    def __init__(self, file: RunFile, storage: Storage, check_alone: Callable[[], None]) -> None:
        self.now = file
        self._storage, self._check_alone = storage, check_alone
        self._keeping = threading.Lock()

    def keep(self, *, epoch_s: float | None = None, generation: int = -1) -> None:
        """Have this safe when it returns; two shifts may begin attempts at the same time, in any order."""
        with self._keeping:
            latest, begun_s = max(generation, self.now.generation), self.now.epoch_s if epoch_s is None else epoch_s
            self.now = msgspec.structs.replace(self.now, epoch_s=begun_s, generation=latest)
            self._check_alone()
            self.now.write(self._storage)


def describe(topology: Topology) -> dict[str, str]:
    """What of a topology must stay the same for a run to be carried on; all else may change.

    At a checkpoint nothing is in flight: only where sources are, state, and what sinks have yet to show depend on it.

    >>> topology = Topology("words", pool=4)
    >>> words = topology.operator("split", str.split, inputs=topology.source("texts"))
    >>> count = topology.operator("count", lambda e, state: e, inputs=words, key="word")
    >>> describe(topology)
    {'texts': 'a source', 'count': 'state by word in 128 key groups'}
    """
    described = dict.fromkeys(topology.sources, SOURCE)
    for name, operator in topology.operators.items():
        if operator.state is not None:
            key = operator.key if isinstance(operator.key, str) else "a function"
            described[name] = f"state by {key} in {operator.state.groups} key groups"
        elif getattr(operator.run, "level", "") == "committed":
            described[name] = SINK
    return described


def run_file(place: Place | None, topology: Topology, options: RunOptions, new_id: str) -> RunFile:
    """The run that the folder holds, if there is one; otherwise a new one. Raises if it cannot be carried on so."""
    mine = RunFile(new_id, options.mode, options.source_slots, describe(topology))
    if place is None:
        return mine
    storage = storage_at(place)
    held = _read(storage)
    if held is None:
        return mine
    if misfits := _misfits(held, mine, topology):
        raise InputError(f"{storage}: holds a run that cannot be carried on so: {'; '.join(misfits)}")
    return msgspec.structs.replace(held, topology=mine.topology)


def _read(storage: Storage) -> RunFile | None:
    try:
        return from_json(storage.read(FILE), RunFile, VERSION)
    except OtherVersion as other:
        raise InputError(
            f"{storage}: holds a run of format {other.version}; this version of Penstock carries on format {VERSION}: "
            "finish it with the version that began it, or begin anew in another folder"
        ) from other
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputError(f"{storage}: cannot be read; {error.strerror or error}") from error
    except (msgspec.MsgspecError, ValueError) as error:
        raise InputError(f"{storage}/{FILE}: does not say which run this is: {error}") from error


def _misfits(held: RunFile, mine: RunFile, topology: Topology) -> list[str]:
    """What of the run does not fit to its topology and options now, in words."""
    found = [
        f"{what} was {was!r}, is {now!r}"
        for what, was, now in (("mode", held.mode, mine.mode), ("source_slots", held.source_slots, mine.source_slots))
        if was != now
    ]
    for name in held.topology | mine.topology:
        was, now = held.topology.get(name), mine.topology.get(name)
        if was == now or (was == SINK and name in topology.operators) or (was is None and now != SOURCE):
            continue  # the same; a sink of another level, which completes what it had; what begins anew
        found.append(f"{name!r} was {was or 'not there'}, is {now or 'not there'}")
    return found
