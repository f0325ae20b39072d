"""A Spark session as the keeper sees it: its slots, its executors, and whether it is still there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.attached.options import NEEDED
from penstock.errors import EngineError, InputError
from penstock.infra.executors import Executors

_DYNAMIC = "spark.dynamicAllocation.enabled"


def executor_settings() -> dict[str, str]:
    """What a Spark session must be made with so that `attach` may change its executors.

    >>> from pyspark.sql import SparkSession
    >>> builder = SparkSession.builder.master("spark://master:7077").config(map=executor_settings())
    """
    return dict(NEEDED)


class SparkApplication:
    """The application that this process is the driver of. `acting`: its executors are to be changed."""

    def __init__(self, spark: Any, *, acting: bool) -> None:
        self._spark = spark
        self._context = spark.sparkContext
        self.id = str(self._context.applicationId)
        if acting:
            self._check()
        on_cluster = not str(self._context.master).startswith("local[") and self._context.master != "local"
        self.executors = Executors(spark) if acting else None
        self._ids = self.executors or (_Seen(spark) if on_cluster else None)
        self._cores: dict[str, int] = {}
        if acting:
            self._check_size()

    def _check(self) -> None:
        told = {key: str(value).lower() for key, value in self._context.getConf().getAll()}
        if told.get(_DYNAMIC) == "true":
            raise InputError(
                f"attach: {_DYNAMIC} must be false, as two cannot size the same executors; got true. "
                "mode='advise' changes nothing, and goes with it"
            )
        if str(self._context.master).startswith("local[") or self._context.master == "local":
            raise InputError(
                f"attach: the session must run on a cluster, whose executors can be changed; its master is "
                f"{self._context.master}. mode='advise' goes with any"
            )
        if wrong := [f"{key}={value}" for key, value in NEEDED.items() if told.get(key) != value]:
            raise InputError(
                f"attach: the session lacks {', '.join(wrong)}: make it with penstock.executor_settings(), "
                "so that executors leave without loss"
            )

    def _check_size(self) -> None:
        """How many slots an executor has must be known before the first is there."""
        if not self.count() and not self._told("spark.executor.cores", ""):
            raise InputError("attach: spark.executor.cores must be set, as no executor is there yet to tell its slots")

    @property
    def slots_each(self) -> int:
        """Tasks that one executor runs at once; on a `local` master one has all slots, unless others are told of."""
        self._look()
        unknown = "1" if self._ids is not None else str(self._context.defaultParallelism)
        cores = max(self._cores.values(), default=0) or int(self._told("spark.executor.cores", unknown))
        return max(1, cores // int(self._told("spark.task.cpus", "1")))

    def slots(self) -> int:
        """Those that tasks can run on now; executors that are leaving take none."""
        if self._ids is None:
            return int(self._context.defaultParallelism)
        return self.count() * self.slots_each

    def count(self) -> int:
        """How many executors there are."""
        return len(self.ids())

    def ids(self) -> list[str]:
        """The executors that are there; on a `local` master that is the driver."""
        if self._ids is None:
            return ["driver"]
        leaving = self._ids.leaving()
        return [one for one in self._ids.ids() if one not in leaving]

    def idle_first(self, executors: Sequence[str]) -> list[str]:
        """The executors by what they run, then by what they keep, the newest first."""
        loads = {one: load for one, load in self._listed().items() if one in executors}
        return sorted(executors, key=lambda one: (loads.get(one, (0, 0)), -int(one) if one.isdecimal() else 0))

    def ended(self) -> str | None:
        """Why there is no session any more, if so."""
        try:
            java = self._context._jsc
            return "the Spark session has ended" if java is None or java.sc().isStopped() else None
        except Exception as error:  # whatever is left of the connection to Java
            return f"the Spark session does not answer: {type(error).__name__}"

    def _told(self, key: str, otherwise: str) -> str:
        return str(self._context.getConf().get(key, otherwise))

    def _look(self) -> None:
        """Spark says once how many cores an executor has."""
        if self._ids is not None and not set(self._ids.ids()) <= self._cores.keys():
            self._listed()

    def _listed(self) -> dict[str, tuple[int, int]]:
        """What every executor runs and keeps."""
        listed, found = self._context._jsc.sc().statusStore().executorList(True), {}
        for place in range(listed.size()):
            one = listed.apply(place)
            name = str(one.id())
            if name != "driver":
                self._cores[name] = int(one.totalCores())
                found[name] = int(one.activeTasks()), int(one.memoryUsed()) + int(one.diskUsed())
        return found


class _Seen:
    """Executors that are only looked at: the session need not allow more."""

    def __init__(self, spark: Any) -> None:
        self._backend = spark.sparkContext._jsc.sc().schedulerBackend()

    def ids(self) -> tuple[str, ...]:
        """Those that are registered."""
        try:
            found = self._backend.getExecutorIds()
        except Exception as error:
            raise EngineError(f"executors: the scheduler does not name them: {type(error).__name__}") from None
        return tuple(str(found.apply(n)) for n in range(found.size()))

    def leaving(self) -> frozenset[str]:
        """None is sent away here."""
        return frozenset()
