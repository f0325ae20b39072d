"""Files of rates and events: where real ones are kept, and what is in them, plain or compressed."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path

from penstock.errors import InputError

COMPRESSED = ".gz"
_PACKAGE = Path(__file__).resolve().parents[1]


def data_folder(name: str) -> Path | None:
    """The folder of that name in $PENSTOCK_DATA or, in a checkout, in its `data/`; None where there is none."""
    root = os.environ.get("PENSTOCK_DATA")
    if not root and _PACKAGE.parent.name != "src":
        return None  # installed without the checkout
    folder = (Path(root) if root else _PACKAGE.parents[1] / "data") / name
    return folder if folder.is_dir() else None


def find_file(folder: Path | None, name: str) -> Path | None:
    """The file of that name in the folder, as it is or compressed; None where there is neither."""
    paths = [] if folder is None else [folder / name, folder / f"{name}{COMPRESSED}"]
    return next((path for path in paths if path.is_file()), None)


def data_file(folder: str, name: str) -> Path:
    """A file of real data that must be there: `data_file("traces", "dns_wrccdc_2018_1s.csv")`."""
    found = find_file(data_folder(folder), name)
    if found is None:
        raise InputError(f"data: no file {folder}/{name} in $PENSTOCK_DATA or, in a checkout, in data/")
    return found


def plain_name(path: Path) -> Path:
    """The file's name without the ending of a compressed one.

    >>> str(plain_name(Path("traces/rates.csv.gz"))), str(plain_name(Path("rates.csv")))
    ('rates.csv', 'rates.csv')
    """
    return Path(path.name.removesuffix(COMPRESSED))


def read_bytes(path: Path) -> bytes:
    """All of a file, decompressed where its name says that it is compressed."""
    content = path.read_bytes()
    if path.suffix != COMPRESSED:
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, zlib.error) as error:  # cut off, or damaged
        raise gzip.BadGzipFile(str(error)) from error
