"""A model file: a line that says what it is, a line of JSON with the header, and the pickled forecaster.

Reading one runs what is pickled in it: a model file is code, and is to be trusted like code.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import msgspec

from penstock.errors import InputError
from penstock.forecast.base import Forecaster

FORMAT = 2  # grows with every change of the files, and of the modules that what is pickled comes from
_FIRST_LINE = b"penstock model\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a model is of, and how good it was on rows that it had not been trained on.

    `errors` has those of smape (in %), rmse and mae that are numbers.
    """

    series: str
    spec: str  # of the forecaster
    interval_s: float  # between two rows
    day: int  # rows in a day
    rows: int  # that it was trained on
    trained_at: str  # ISO 8601
    errors: Mapping[str, float] = field(default_factory=dict)
    run: str | None = None  # whose rates the rows are, where they come from a store
    interval: int | None = None  # the number of that run's interval it was trained up to


@dataclass(frozen=True, slots=True)
class Trained:
    """A trained forecaster, as it stands after the last row it was trained on."""

    header: Header
    forecaster: Forecaster


@dataclass(frozen=True, slots=True, kw_only=True)
class _Preamble:
    """The line of JSON in a model file."""

    format: int
    penstock: str
    sha256: str  # of what is pickled
    header: Header


def packed(forecaster: Forecaster) -> bytes:
    """The forecaster as bytes, the way a model file holds it."""
    return pickle.dumps(forecaster, protocol=5)


def model_file(header: Header, pickled: bytes) -> bytes:
    """What is in the file of a packed model."""
    checksum = hashlib.sha256(pickled).hexdigest()
    preamble = _Preamble(format=FORMAT, penstock=version("penstock"), sha256=checksum, header=header)
    return _FIRST_LINE + msgspec.json.encode(preamble) + b"\n" + pickled


def replace_file(path: Path, content: bytes) -> None:
    """Write beside it, then rename: whoever reads finds the old file or the new one, whole."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise InputError(f"file '{path}': cannot be written; {error.strerror or error}") from error


def read_model(path: Path, series: str) -> Trained:
    """The model in a file; an InputError where it is not a whole one of this series and of this version."""
    thing = f"model file '{path}'"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{thing}: must be a file that can be read; {error.strerror or error}") from error
    preamble, pickled = _parted(thing, content)
    if preamble.header.series != series:
        raise InputError(f"{thing}: must be of series '{series}'; got '{preamble.header.series}'")
    return Trained(preamble.header, _unpacked(thing, pickled))


def _parted(thing: str, content: bytes) -> tuple[_Preamble, bytes]:
    if not content.startswith(_FIRST_LINE):
        raise InputError(f"{thing}: must begin with {_FIRST_LINE.decode().strip()!r}; got another kind of file")
    line, _, pickled = content.removeprefix(_FIRST_LINE).partition(b"\n")
    try:
        found = msgspec.json.decode(line, type=dict[str, object])
        for name, wanted in (("format", FORMAT), ("penstock", version("penstock"))):
            if found.get(name) != wanted:
                raise InputError(f"{thing}: its {name} must be {wanted}; got {found.get(name)}: train it again")
        preamble = msgspec.convert(found, _Preamble)
    except msgspec.MsgspecError as error:
        raise InputError(f"{thing}: must say in its second line what it is; {error}") from error
    if hashlib.sha256(pickled).hexdigest() != preamble.sha256:
        raise InputError(f"{thing}: must be whole; its checksum is wrong: cut off, or changed")
    return preamble, pickled


def _unpacked(thing: str, pickled: bytes) -> Forecaster:
    try:
        forecaster = pickle.loads(pickled)
    except Exception as error:  # a pickle may raise anything
        raise InputError(f"{thing}: must hold a forecaster; got {type(error).__name__}: {error}") from error
    if not isinstance(forecaster, Forecaster):
        raise InputError(f"{thing}: must hold a forecaster; got a {type(forecaster).__name__}")
    return forecaster
