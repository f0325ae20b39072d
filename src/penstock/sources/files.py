"""A source that reads a file of events: JSON lines or CSV, plain or compressed."""

from __future__ import annotations

import csv
import io
import math
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from penstock.errors import InputError
from penstock.sources.numbered import NumberedSource
from penstock.workload.data import COMPRESSED, plain_name, read_bytes

INDEX_EVERY = 1024  # lines between two remembered positions


class FileSource(NumberedSource):
    """One event a line, at a steady rate or (rate None) as fast as the topology takes them.

    The file is indexed once where the run is declared, and checked line by line; it is read by number where the
    source runs, so it must be reachable there under the same path. A compressed one (`events.jsonl.gz`) is held
    decompressed in memory.
    """

    def __init__(self, path: str | Path, *, rate: float | None = None) -> None:
        self._path = Path(path)
        if not self._path.is_file():
            raise InputError(f"file source: no file {str(path)!r}")
        kind = plain_name(self._path).suffix
        if kind not in (".jsonl", ".ndjson", ".csv"):
            raise InputError(f"file source {str(path)!r}: must end in .jsonl, .ndjson or .csv; got {kind!r}")
        if rate is not None and not (math.isfinite(rate) and rate > 0):
            raise InputError(f"file source {str(path)!r}: rate must be above 0; got {rate!r}")
        self._rate = rate
        self._content: bytes | None = None  # of a compressed file
        self._fields: list[str] = []
        self._positions: list[int] = []
        self.total = self._index()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_content": None}  # read anew where the source runs

    def _open(self) -> BinaryIO:
        if self._path.suffix != COMPRESSED:
            return self._path.open("rb")
        try:
            self._content = self._content or read_bytes(self._path)
        except OSError as error:
            raise InputError(f"file source {str(self._path)!r}: must be a whole gzip file; {error}") from None
        return io.BytesIO(self._content)

    def _index(self) -> int:
        count = 0
        with self._open() as file:
            if plain_name(self._path).suffix == ".csv":
                self._fields = _values(
                    file.readline().removeprefix(BOM_UTF8), f"file source {str(self._path)!r} line 1"
                )
                if not self._fields:
                    raise InputError(f"file source {str(self._path)!r}: line 1 must name the fields; got an empty line")
            position = file.tell()
            for line in file:
                if count % INDEX_EVERY == 0:
                    self._positions.append(position)
                self._parse(line, count)
                position += len(line)
                count += 1
        if not count:
            raise InputError(f"file source {str(self._path)!r}: holds no events")
        return count

    def _parse(self, line: bytes, number: int) -> Any:
        place = f"file source {str(self._path)!r} event {number}"
        if self._fields:
            values = _values(line, place)
            if len(values) != len(self._fields):
                raise InputError(f"{place}: must have {len(self._fields)} fields on one line; got {len(values)}")
            return dict(zip(self._fields, values, strict=True))
        try:
            event = msgspec.json.decode(line)
        except ValueError as error:  # not JSON, or not UTF-8
            raise InputError(f"{place}: must be JSON: {error}") from None
        if not isinstance(event, dict):
            raise InputError(f"{place}: must be a JSON object; got {type(event).__name__}")
        return event

    def due(self, elapsed_s: float) -> int:
        """Events due by then; all of them when no rate is set."""
        total = self.total or 0
        if self._rate is None:
            return total
        return min(math.floor(elapsed_s * self._rate) + 1, total) if elapsed_s >= 0 else 0

    def due_times(self, numbers: range) -> list[float]:
        """When each of these events is due; NaN (when it is sent) when no rate is set."""
        if self._rate is None:
            return [math.nan] * len(numbers)
        return [number / self._rate for number in numbers]

    def read(self, numbers: range) -> list[Any]:
        """These lines, as events."""
        if not numbers:
            return []
        wanted = set(numbers)
        return [self._parse(line, n) for n, line in self._lines(numbers.start, numbers[-1] + 1) if n in wanted]

    def _lines(self, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
        with self._open() as file:
            file.seek(self._positions[start // INDEX_EVERY])
            number = start // INDEX_EVERY * INDEX_EVERY
            for line in file:
                if number >= stop:
                    return
                if number >= start:
                    yield number, line
                number += 1


def _values(line: bytes, place: str) -> list[str]:
    try:
        return next(csv.reader([line.decode()]), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{place}: must be CSV: {error}") from None
