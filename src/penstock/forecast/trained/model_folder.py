"""The model folder: trained forecasters on disk, a file for each series and model, and an index for people.

Reading a model runs what is pickled in its file: a model folder is code, and is to be trusted like code.
"""

from __future__ import annotations

import fcntl
import hashlib
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from penstock.common.names import one_of
from penstock.errors import InputError
from penstock.forecast.trained.model_file import FORMAT, Header, Trained, model_file, read_model, replace_file

INDEX = "models.json"
ERRORS = ("smape", "rmse", "mae")  # in the order in which they tell which model is best

Mark = tuple[str, int, int]  # a model's file, its number on the disk and when it was written


@dataclass(frozen=True, slots=True)
class _Entry:
    """A model in the index."""

    file: str
    header: Header


@dataclass(slots=True)
class _Shelf:
    """A series in the index: its models by their specs, and which of them is best."""

    best: str = ""
    models: dict[str, _Entry] = field(default_factory=dict)

    def put(self, entry: _Entry) -> None:
        """Put a model in its place, and see which is best now."""
        self.models[entry.header.spec] = entry
        self.best = best_of([one.header for one in self.models.values()]).spec


@dataclass(slots=True)
class _Index:
    """What `models.json` holds."""

    format: int = FORMAT
    series: dict[str, _Shelf] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether it can be used as it is."""
        return self.format == FORMAT and all(shelf.best in shelf.models for shelf in self.series.values())


class ModelFolder:
    """Reads and writes the models in a folder; others may read it at any time, and find whole files only.

    The best model of a series is the one of least sMAPE among those of its last training.

    >>> from penstock.forecast.last_value import LastValue
    >>> from penstock.forecast.trained.model_file import packed
    >>> place = tempfile.TemporaryDirectory()
    >>> folder, model = ModelFolder(place.name), LastValue()
    >>> model.learn(120)
    >>> header = Header(series="tweets", spec="last_value", interval_s=5, day=17280, rows=1, trained_at="2026-01-01")
    >>> folder.write((header, packed(model)))
    >>> folder.read("tweets").forecaster.forecast(1).tolist()
    [120.0]
    >>> place.cleanup()
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __str__(self) -> str:
        return f"model folder '{self.path}'"

    def prepare(self) -> None:
        """Make the folder if need be; an InputError where models cannot be written into it."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.path):
                pass
        except OSError as error:
            raise InputError(f"{self}: must be a folder that can be written; {error.strerror or error}") from error
        self._index_or_new()

    def write(self, *models: tuple[Header, bytes]) -> None:
        """Write packed models, each in place of the one of the same series and spec, then the index."""
        self.prepare()
        for header, pickled in models:
            _when(header.trained_at)
            replace_file(self.path / _file_name(header), model_file(header, pickled))
        with self._locked():
            index = self._index_or_new()
            for header, _ in models:
                index.series.setdefault(header.series, _Shelf()).put(_Entry(_file_name(header), header))
            text = msgspec.json.format(msgspec.json.encode(index), indent=2)
            replace_file(self.path / INDEX, text + b"\n")

    def series(self) -> tuple[str, ...]:
        """The series that there are models of."""
        return tuple(self._index().series)

    def has(self, series: str) -> bool:
        """Whether there are models of a series; also of a folder that nothing was written into yet."""
        return series in self._index_or_new().series

    def models(self, series: str) -> Mapping[str, Header]:
        """What there is of a series, by spec."""
        return {spec: entry.header for spec, entry in self._shelf(series).models.items()}

    def best(self, series: str) -> Header:
        """What the best model of a series is."""
        return self._best_of(series).header

    def read(self, series: str, spec: str | None = None) -> Trained:
        """A model of a series, the best one unless another is named; runs what is pickled in its file."""
        shelf = self._shelf(series)
        wanted = one_of(f"{self}, series '{series}'", spec or shelf.best, shelf.models)
        return read_model(self.path / shelf.models[wanted].file, series)

    def changed_since(self, series: str, mark: Mark | None) -> Mark | None:
        """The mark of the series' best model where it is another than this; an InputError where there is no model."""
        file = self._best_of(series).file
        try:
            found = (self.path / file).stat()
        except OSError:
            raise InputError(f"model file '{self.path / file}': must exist; nothing is there") from None
        new = (file, found.st_ino, found.st_mtime_ns)
        return new if new != mark else None

    def _best_of(self, series: str) -> _Entry:
        shelf = self._shelf(series)
        return shelf.models[shelf.best]

    def _shelf(self, series: str) -> _Shelf:
        index = self._index()
        if series not in index.series:
            raise InputError(f"{self}: must have a model of series '{series}'; has {_some(list(index.series))}")
        return index.series[series]

    def _index(self) -> _Index:
        path = self.path / INDEX
        try:
            index = msgspec.json.decode(path.read_bytes(), type=_Index)
        except FileNotFoundError:
            raise InputError(f"{self}: must have an index, {INDEX}; nothing is there") from None
        except (OSError, msgspec.MsgspecError) as error:
            raise InputError(f"index '{path}': must be one that penstock train wrote; {error}") from error
        if not index.whole:
            found = f"got version {index.format}: train anew, into another folder"
            raise InputError(f"index '{path}': must be whole and of version {FORMAT}; {found}")
        return index

    def _index_or_new(self) -> _Index:
        return self._index() if (self.path / INDEX).exists() else _Index()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Two trainings that write into the same folder take turns with the index."""
        with (self.path / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def best_of(models: Sequence[Header]) -> Header:
    """The one of least sMAPE, then RMSE; of the last training only, for earlier errors were measured on other rows."""
    last = max(_when(header.trained_at) for header in models)
    rivals = [header for header in models if _when(header.trained_at) == last]
    return min(rivals, key=lambda header: [header.errors.get(name, float("inf")) for name in ERRORS])


def _when(text: str) -> datetime:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"model: trained_at must be an ISO date; got {text!r}") from None
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def _file_name(header: Header) -> str:
    """A name that any disk takes, and that no other series and spec has."""
    whose = (header.series, header.spec)
    plain = "-".join(re.sub(r"[^A-Za-z0-9_]+", "-", text)[:40] for text in whose)
    return f"{plain}-{hashlib.sha256(repr(whose).encode()).hexdigest()[:8]}.model"


def _some(names: list[str], most: int = 10) -> str:
    """Names for a message."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more or "none"
