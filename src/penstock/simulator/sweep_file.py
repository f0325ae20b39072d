"""The file of a sweep, from which one that was stopped goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any, TextIO

from penstock.errors import InputError
from penstock.simulator.curves import Point


class SweepFile:
    """What a sweep has come to so far, and its file, if it has one: a line for the whole, then one for each task."""

    def __init__(self, path: Path | None, settings: Mapping[str, Any]) -> None:
        self.points: list[Point] = []
        self.bounds: dict[tuple[str, int], float] = {}
        self._path = path
        self._file: TextIO | None = None
        self._mark = sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
        if path is not None and path.exists():
            self._read(path)

    def __enter__(self) -> SweepFile:
        if self._path is not None:
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                cut_off = self._path.exists() and not self._path.read_bytes().endswith(b"\n")
                self._file = self._path.open("a", encoding="utf-8")
            except OSError as error:
                raise InputError(f"file '{self._path}': cannot be written; {error.strerror or error}") from error
            if not self._file.tell():
                self._write({"sweep": self._mark})
            elif cut_off:
                self._file.write("\n")
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def has(self, trace: str, seed: int, policy: str) -> bool:
        """Whether the points of a task are there; they are kept all at once."""
        return any((one.trace, one.seed, one.policy) == (trace, seed, policy) for one in self.points)

    def add(self, trace: str, seed: int, bound: float | None, points: Sequence[Point]) -> None:
        """Keep what came of a task."""
        self.points += points
        if bound is not None:
            self.bounds[trace, seed] = bound
        self._write({"trace": trace, "seed": seed, "bound": bound, "points": [asdict(one) for one in points]})

    def _write(self, line: Mapping[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()

    def _read(self, path: Path) -> None:
        try:
            lines = list(filter(None, map(_line, path.read_text(encoding="utf-8").splitlines())))
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"file '{path}': cannot be read; {error}") from error
        if not lines or lines[0].get("sweep") != self._mark:
            raise InputError(f"file '{path}': is not of this sweep; remove it, or name another file")
        for line in lines[1:]:
            self.points += [Point(**one) for one in line["points"]]
            if line["bound"] is not None:
                self.bounds[line["trace"], line["seed"]] = line["bound"]


def _line(text: str) -> dict[str, Any] | None:
    """What a line says; None for one that was not written to its end, as where a sweep was killed."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
