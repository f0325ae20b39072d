"""`penstock.attach`: the executors of queries that are running already, kept to what they need."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.attached.config import from_file
from penstock.attached.keeper import Keeper
from penstock.attached.model.demand import Promise
from penstock.attached.model.need import Bounds
from penstock.attached.options import DEFAULT_FORECASTER, DEFAULT_POLICY, KeeperOptions, check_calendar, usual_td_s
from penstock.attached.spark_query import SparkQuery
from penstock.attached.spark_session import SparkApplication
from penstock.common.names import hint, one_of
from penstock.errors import EngineError, InputError
from penstock.policy.base import Policy
from penstock.policy.guards.calendar import parse_calendar

log = logging.getLogger(__name__)

_KEEPERS: weakref.WeakValueDictionary[str, Keeper] = weakref.WeakValueDictionary()  # by application


@from_file
def attach(
    query: Any,
    executors: str | int = "1..8",
    target_ms: float = 10_000,
    late: float = 0.01,
    *,
    mode: str = "act",
    policy: str | Policy = DEFAULT_POLICY,
    forecaster: str | None = DEFAULT_FORECASTER,
    td_s: float | None = None,
    cooldown_s: float = 30.0,
    store: str | Path | None = None,
    lag: Mapping[str, Callable[[], float]] | None = None,
    calendar: str | None = None,
    config: str | Path | None = None,  # noqa: ARG001 - read by `from_file`
) -> Keeper:
    """Watch a running query, or several of one session, and keep its executors to what they need.

    At most the share `late` of the rows shall take longer than `target_ms` from their arrival to the end of their
    batch. `executors` are the fewest and the most. `mode="advise"` decides, records and explains, and changes nothing.
    `policy` is a name or a policy of your own; every `td_s` it decides, if that is not given as often as the longest
    trigger, from 5 s to a minute. With a `store` every interval is kept there with its reasons. `lag` says by a query's
    name how many rows wait at its source, where Spark cannot know. `calendar` has known events ahead, in which nothing
    changes or a query has at least so many slots: "freeze sat,sun 22:00-06:00; least clicks=8 2026-12-24 00:00-24:00".
    A query that is attached later, with the same options, shares the executors with the others. `config` names a file
    (`penstock.toml`) whose table `[attach]` has what is not given here.

        query = frame.writeStream.….start()
        keeper = penstock.attach(query, executors="1..8", target_ms=10_000, late=0.01)
    """
    queries = [SparkQuery(one) for one in (query if isinstance(query, list | tuple) else [query])]
    if not queries:
        raise InputError("attach: must be given at least one query; got none")
    options = KeeperOptions(
        bounds=Bounds.parse(executors),
        promise=Promise(target_ms / 1000, late),
        mode=mode,
        policy=policy,
        forecaster=forecaster,
        td_s=usual_td_s([one.trigger_s for one in queries]) if td_s is None else td_s,
        cooldown_s=cooldown_s,
        calendar=calendar,
    )
    lags = {one_of("attach: lag, query", name, [one.name for one in queries]): one for name, one in (lag or {}).items()}
    application = SparkApplication(_session(), acting=options.acting)
    check_calendar(options, application.slots_each)
    keeper = _joined(application.id, options)
    new = keeper is None
    keeper = keeper or Keeper(application, options, store)
    for one in queries:
        keeper.add(one, lags.get(one.name))
    _say_unknown(keeper)
    _KEEPERS[application.id] = keeper
    return keeper.start() if new else keeper


def _say_unknown(keeper: Keeper) -> None:
    """Events may be of queries that are attached later, or of none."""
    for event in parse_calendar(keeper.options.calendar):
        for name in event.least.keys() - keeper.queries.keys():
            log.warning("event %r: no query '%s' is attached%s", event.said, name, hint(name, keeper.queries))


def _joined(application: str, options: KeeperOptions) -> Keeper | None:
    """The keeper that the application has already: one that works by the same rules takes more queries in."""
    other = _KEEPERS.get(application)
    if other is None or not other.alive:
        return None
    if replace(options, td_s=other.options.td_s) != other.options:
        rule = "queries of one session share its executors, and must be attached with the same options"
        raise InputError(f"attach: {rule}; {application} is kept for {', '.join(other.queries)} with others")
    return other


def _session() -> Any:
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if session is None:
        raise EngineError("attach: there is no Spark session in this process")
    return session
