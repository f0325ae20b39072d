"""The Python daemon that Spark forks its workers from, with everything hot imported before the first fork.

Spark starts it by module name (`spark.python.daemon.module`). What is here before the fork is shared: a worker that
only waits has few megabytes of its own, and a pool starts several times faster. That goes for the libraries that the
user's operators need, too.
"""

import encodings.idna  # noqa: F401 - every connection looks for it
import gc
import importlib
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from zipimport import zipimporter

os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # the other pools begin with 4 MB for each process

import numpy
import pandas  # noqa: F401
import pyarrow as pa
import pyarrow.pandas_compat
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import penstock.engine.worker.overdue
import penstock.engine.worker.replica
import penstock.engine.worker.source_slot
import penstock.engine.worker.stage
import penstock.engine.worker.standby
import penstock.sinks  # noqa: F401
from penstock.engine.plan.libraries import PRELOAD
from penstock.engine.worker.outbox import rows_of
from penstock.grouping import warm_up


def preload() -> None:
    """Import the libraries that the program needs.

    One that starts a thread or opens anything as it is imported cannot be shared: the daemon begins again without it,
    and workers import it themselves. What is wrong with one that cannot be imported is theirs to say, too.
    """
    names = [name for name in os.environ.get(PRELOAD, "").split(",") if name]
    for name in names:
        before = _held()
        with _silent(), suppress(Exception):
            importlib.import_module(name)
        if _held() != before:
            package = name.partition(".")[0]
            os.environ[PRELOAD] = ",".join(one for one in names if one.partition(".")[0] != package)
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def _held() -> tuple[set[str], int]:
    """Which files are open, but for archives with modules, and how many threads there are."""
    process = Path("/proc/self")
    if not process.exists():  # only Linux shows them
        return set(), threading.active_count()
    files = {str(one.readlink()) for one in (process / "fd").iterdir() if one.is_symlink()}
    return files - set(sys.path), len(list((process / "task").iterdir()))


@contextmanager
def _silent() -> Iterator[None]:
    """What is printed goes to standard error: Spark reads from standard output where the daemon listens."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def seed_anew() -> None:
    """Have every worker draw random numbers of its own from numpy's; Python's own generator does so by itself."""
    os.register_at_fork(after_in_child=numpy.random.seed)


def keep_archives() -> None:
    """Have no worker read archives anew: Spark has each look for new modules first, and its own are in a zip file.

    Python 3.11 reads the zip file's list for every package in it, 18 times: a fifth of a second of CPU time a worker.
    Folders are forgotten, as to mark hundreds of them as old costs each worker 2 MB: who imports from one looks again.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if not isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]
        else:
            finder.invalidate_caches = lambda: None  # type: ignore[method-assign]


def use_arrow() -> None:
    """Do once what every worker does with its first rows: what that brings into memory is 2 MB, then shared by all."""
    sink, (rows,) = pa.BufferOutputStream(), rows_of([(0, b"row")])
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    for batch in pa.ipc.open_stream(sink.getvalue()):
        batch.column(1).to_pylist()


if __name__ == "__main__":
    preload()
    seed_anew()
    warm_up()  # compiled groupings, too, are there before the first fork
    use_arrow()
    keep_archives()
    gc.collect()
    gc.freeze()  # what is there by now stays: no collection goes through it, or makes a worker's own copy of it
    manager()
