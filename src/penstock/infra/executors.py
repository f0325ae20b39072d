"""The executors of a Spark session, on whatever cluster it runs: which there are, one more, and one fewer."""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql import SparkSession

from penstock.errors import EngineError

SETTINGS = {"spark.decommission.enabled": "true"}  # executors look at it, so it must be set when the session starts
_BACKEND = "org.apache.spark.scheduler.cluster.CoarseGrainedSchedulerBackend"
_KNOWN = _BACKEND.replace(".", "$") + "$$executorDataMap"  # as Scala calls what is private
_INFO = "org.apache.spark.scheduler.ExecutorDecommissionInfo"


def ready_executors(spark: SparkSession) -> dict[str, int]:
    """The executors of a session on a cluster that Spark puts tasks on, each with its slots.

    From its registration until it says that it has started, Spark counts the cores of an executor, and has none free.
    """
    backend, jvm = spark.sparkContext._jsc.sc().schedulerBackend(), spark.sparkContext._jvm
    assert jvm is not None
    known, found = getattr(backend, _KNOWN)(), {}
    for name in _registered(backend):
        one = known.get(name)
        if one.isEmpty():  # it has gone meanwhile
            continue
        # py4j cannot read free cores, a decimal of Scala's, and finds a static `toString` or the other as chance has it
        fields = jvm.org.apache.commons.lang3.builder.ReflectionToStringBuilder(one.get())
        free = re.search(r"freeCores=([\d.]+)", fields.toString())
        if free and float(free[1]) > 0:
            found[name] = int(one.get().totalCores())
    return found


def _registered(backend: Any) -> list[str]:
    found = backend.getExecutorIds()
    return [str(found.apply(n)) for n in range(found.size())]


class Executors:
    """What Spark's scheduler knows of its executors, and what it can be asked for.

    The session must run on a cluster, with `SETTINGS`; an EngineError says so otherwise. The total that is asked for
    counts the executors that are leaving, as Spark's Master counts them until they are gone.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._context: Any = spark.sparkContext._jsc.sc()
        self._backend: Any = self._context.schedulerBackend()
        if not self._java(_BACKEND).isInstance(self._backend):
            master = spark.sparkContext.master
            raise EngineError(f"executors: the session must run on a cluster; its master is {master}")
        for key, value in SETTINGS.items():
            if spark.sparkContext.getConf().get(key, "false") != value:
                raise EngineError(f"executors: {key} must be {value} before the session starts")

    def ids(self) -> tuple[str, ...]:
        """The executors that are registered, the oldest first; those that are leaving too while they live."""
        return tuple(sorted(_registered(self._backend), key=lambda one: (len(one), one)))

    def ready(self) -> frozenset[str]:
        """The executors that Spark puts tasks on."""
        return frozenset(ready_executors(self._spark))

    def request(self, total: int) -> None:
        """Have so many executors, those that are leaving among them. None is stopped if there are more."""
        none = self._jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(self._jvm.java.util.HashMap())
        if not self._context.requestTotalExecutors(total, 0, none):
            raise EngineError(f"executors: the cluster did not take the request for {total}")

    def decommission(self, executor: str) -> None:
        """Put no more of Spark's tasks on an executor; it exits once those that it runs have ended.

        The total that was asked for is lowered by one, so that the cluster starts no other in its place.
        """
        known = self.ids()
        if executor not in known:
            raise EngineError(f"executor '{executor}': is not registered; known: {', '.join(known) or 'none'}")
        if executor in self.leaving():
            return
        self._keep_target(len(known))
        info = self._java(_INFO).getConstructors()[0].newInstance(self._arguments("it is to leave"))
        if not self._backend.decommissionExecutor(executor, info, True, False):
            raise EngineError(f"executor '{executor}': Spark did not decommission it")

    def leaving(self) -> frozenset[str]:
        """The executors that have been decommissioned, by whomever, and are not gone."""
        pending = self._backend.executorsPendingDecommission().keysIterator()
        found = set()
        while pending.hasNext():
            found.add(str(pending.next()))
        return frozenset(found & set(self.ids()))

    def _keep_target(self, alive: int) -> None:
        """Ask for what there is if nothing was asked for yet: Spark cannot lower a total that it does not have."""
        if self._backend.getRequestedTotalExecutors().isEmpty():
            self.request(alive)

    @property
    def _jvm(self) -> Any:
        return self._spark.sparkContext._jvm

    def _java(self, name: str) -> Any:
        return self._jvm.java.lang.Class.forName(
            name, True, self._jvm.org.apache.spark.util.Utils.getSparkClassLoader()
        )

    def _arguments(self, why: str) -> Any:
        gateway: Any = self._spark.sparkContext._gateway
        array = gateway.new_array(self._jvm.java.lang.Object, 2)
        array[0], array[1] = why, self._jvm.scala.Option.empty()
        return array
