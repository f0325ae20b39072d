"""The Python daemon that Spark forks its workers from, with everything hot imported before the first fork.

Spark starts it by module name (`spark.python.daemon.module`). Preloading halves a worker's private memory and makes
the first use of a pool several times faster.
"""

import gc
import sys
from zipimport import zipimporter

import numpy  # noqa: F401
import pandas  # noqa: F401
import pyarrow  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import penstock.engine.worker.replica
import penstock.engine.worker.source_slot
import penstock.engine.worker.stage
import penstock.sinks  # noqa: F401
from penstock.grouping import warm_up


def forget_archives() -> None:
    """Have no worker read archives anew: Spark has each look for new modules first, and its own are in a zip file.

    Python 3.11 reads the zip file's list for every package in it, 18 times: a fifth of a second of CPU time a worker.
    Whoever does import from there later opens the archive again.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]


if __name__ == "__main__":
    warm_up()  # compiled groupings, too, are there before the first fork
    forget_archives()
    gc.freeze()  # what is there by now stays: no collection goes through it, or makes a worker's own copy of it
    manager()
