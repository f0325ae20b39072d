"""Training many models at once on Spark: each is a job of one partition, so that one that fails fails alone.

The only module of `forecast/` that imports Spark.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.engine.session import open_session
from penstock.forecast.trained.job import Fitted, Job, Outcome, train_here

_TAG = "penstock-training"
_LOOK_S = 0.25  # how long results are gathered at most
_ONE_THREAD = {  # a model has one core; the others have theirs
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
SETTINGS = {
    "spark.python.daemon.module": "pyspark.daemon",
    **{f"spark.executorEnv.{name}": value for name, value in _ONE_THREAD.items()},
}


@contextmanager
def training_session(cores: int | None, log_file: Path) -> Iterator[SparkSession]:
    """A local session with so many cores, or with all of the machine's; its log goes to the file."""
    master = "local[*]" if cores is None else f"local[{cores}]"
    spark = open_session(cores or 1, {**SETTINGS, "spark.master": master}, log_file)
    try:
        yield spark
    finally:
        spark.stop()


def train(jobs: Sequence[Job], spark: SparkSession) -> Generator[list[Outcome]]:
    """Train all models where the session runs, and give what is done as it arrives; closing it ends what still runs.

    A session of a cluster needs Penstock installed on its workers.
    """
    context = spark.sparkContext
    pool = ThreadPoolExecutor(2 * context.defaultParallelism, thread_name_prefix="penstock-training")
    waiting = {pool.submit(_on_spark, context, job) for job in jobs}
    try:
        while waiting:
            done, waiting = _next(waiting)
            yield [future.result() for future in done]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        context.cancelJobsWithTag(_TAG)


def _next(waiting: set[Future[Outcome]]) -> tuple[set[Future[Outcome]], set[Future[Outcome]]]:
    """Those that are done, at least one, and the others; a short while is given to those that are nearly done."""
    wait(waiting, return_when=FIRST_COMPLETED)
    return wait(waiting, timeout=_LOOK_S)


def _on_spark(context: SparkContext, job: Job) -> Outcome:
    context.addJobTag(_TAG)  # of this thread's jobs
    try:
        return Outcome(job, *context.parallelize([job], 1).map(_work).collect()[0])
    except (Py4JJavaError, PySparkException) as error:
        return Outcome(job, failure=f"the process that trained it was lost: {_cause(str(error))}")


def _work(job: Job) -> tuple[Fitted | None, str | None, float]:
    """What an outcome holds besides its job, which need not travel back."""
    done = train_here(job)
    return done.fitted, done.failure, done.cpu_s


def _cause(text: str) -> str:
    """What Spark says went wrong with a task, without the stack."""
    found = re.search(r"most recent failure: .*?Exception: (.*)", text)
    return (found[1] if found else text).partition("\n")[0].partition(". ")[0]
