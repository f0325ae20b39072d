"""The Python daemon that Spark forks its workers from, with everything hot imported before the first fork.

Spark starts it by module name (`spark.python.daemon.module`). Preloading halves a worker's private memory and makes
the first use of a pool several times faster.
"""

import gc

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

if __name__ == "__main__":
    warm_up()  # compiled groupings, too, are there before the first fork
    gc.freeze()  # what is there by now stays: no collection goes through it, or makes a worker's own copy of it
    manager()
