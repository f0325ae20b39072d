"""The dashboard's pages and the JSON beneath them: they read the store, and pass on orders to a run that goes on."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import sqlalchemy as sa
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from penstock.errors import PenstockError
from penstock.metrics import schema
from penstock.metrics.rows import RunRow
from penstock.metrics.store import Store
from penstock.ui.compare import side_by_side, totals_of
from penstock.ui.decided import Lately
from penstock.ui.guard import Guard
from penstock.ui.moment import moment
from penstock.ui.operators import operator_series, replicas_over_time
from penstock.ui.series import RunSeries
from penstock.ui.steer import NOT_HERE, Bridge

STATIC = Path(__file__).parent / "static"
LOOK_EVERY_S = 0.25  # for a new interval, while somebody watches
ALIVE_EVERY_S = 15.0  # a word on a line where nothing happens, so that a viewer who has gone is noticed
MOST_RUNS_KEPT = 8  # in memory
_AS_IN_JAVASCRIPT = "!'()*~"  # what its encodeURIComponent leaves as it is, beside letters and digits
NOT_LIVE = "metrics are of a run that goes on: start it with `penstock run … --ui PORT`, and ask that port\n"

Seen = tuple[int | None, str | None]  # of a run: its last interval, and when it ended
Exposition = Callable[[], tuple[bytes, str]]  # what /metrics answers, and its content type


class Dashboard:
    """Answers from one store; with `exposition` also what Prometheus asks for, and with a bridge orders."""

    def __init__(self, store: Store, exposition: Exposition | None = None, bridge: Bridge | None = None) -> None:
        self._store = store
        self._bridge = bridge
        self._exposition = exposition
        self._series: dict[str, RunSeries] = {}
        self._lately: dict[str, Lately] = {}  # of runs that somebody watches
        self._looking = asyncio.Lock()  # one looks for all who watch; the others wait, and take no thread for it
        self._seen: dict[str, tuple[float, Seen]] = {}  # by run, and when that was
        self._last_update: tuple[object, bytes] = (None, b"")
        self._last_moment: tuple[object, msgspec.Raw] = (None, msgspec.Raw())
        self.closing = False  # viewers are let go of

    def app(self, host: str) -> Starlette:
        """The application that a server runs, guarded for this host."""
        run = "/api/runs/{run}"
        routes = [
            Route("/", _file("index.html")),
            Route("/run/{run}", _run_page),
            Route("/compare", _file("compare.html")),
            Route("/metrics", self._metrics),
            Route("/api/runs", self._runs),
            Route("/api/compare", self._compare),
            Route(run, self._overview),
            Route(f"{run}/at/{{number:int}}", self._moment),
            Route(f"{run}/replicas", self._replicas),
            Route(f"{run}/operators/{{operator}}", self._operator),
            Route(f"{run}/live", self._live),
            Route(f"{run}/orders", self._orders, methods=["GET", "POST"]),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]
        failures: Any = {sa.exc.SQLAlchemyError: _store_failed}
        return Starlette(routes=routes, middleware=[Middleware(Guard, host=host)], exception_handlers=failures)

    async def _runs(self, _request: Request) -> Response:
        return _json(await run_in_threadpool(self._listed))

    def _listed(self) -> dict[str, Any]:
        """All runs, newest first, with how far they came."""
        table = schema.intervals.c
        query = sa.select(table.run, sa.func.count().label("intervals"))
        counts = {row.run: row.intervals for row in self._store.select(query.group_by(table.run))}
        runs = reversed(self._store.runs())
        return {
            "store": str(self._store),
            "runs": [{**asdict(one), "intervals": counts.get(one.run, 0)} for one in runs],
        }

    async def _overview(self, request: Request) -> Response:
        return _json(await run_in_threadpool(self._overview_of, request.path_params["run"]))

    def _overview_of(self, name: str) -> dict[str, Any]:
        run, series = self._run(name), self._series_of(name)
        last = series.refresh()
        shown = None if last is None else moment(self._store, run, last, series.start_s)
        steerable = run.finished_at is None and self._bridge_to(name) is not None
        return {"run": asdict(run), "series": series.overview(), "moment": shown, "steerable": steerable}

    async def _compare(self, request: Request) -> Response:
        """Two runs side by side: `?a=RUN&b=RUN`."""
        names = [request.query_params.get(side, "") for side in ("a", "b")]
        return _json(await run_in_threadpool(self._compared, names))

    def _compared(self, names: list[str]) -> dict[str, Any]:
        runs = [self._run(name) for name in names]
        first, second = series = [self._series_of(name) for name in names]
        for one in series:
            one.refresh()
        totals = [totals_of(self._store, name) for name in names]
        return {"runs": [asdict(one) for one in runs], "totals": totals, **side_by_side(first, second)}

    async def _moment(self, request: Request) -> Response:
        found = await run_in_threadpool(self._moment_of, request.path_params["run"], request.path_params["number"])
        return _json(found)

    def _moment_of(self, name: str, number: int) -> dict[str, Any]:
        run, series = self._run(name), self._series_of(name)
        series.refresh()
        found = moment(self._store, run, number, series.start_s)
        if found is None:
            raise HTTPException(404, f"run {name!r}: has no interval up to {number}")
        return found

    async def _replicas(self, request: Request) -> Response:
        run = (await run_in_threadpool(self._run, request.path_params["run"])).run
        return _json(await run_in_threadpool(replicas_over_time, self._store, run))

    async def _operator(self, request: Request) -> Response:
        run = (await run_in_threadpool(self._run, request.path_params["run"])).run
        operator = request.path_params["operator"]
        found = await run_in_threadpool(operator_series, self._store, run, operator)
        if not found["number"]:
            raise HTTPException(404, f"run {run!r}: has no operator {operator!r}")
        return _json(found)

    async def _live(self, request: Request) -> Response:
        name = request.path_params["run"]
        await run_in_threadpool(self._run, name)
        given = request.headers.get("last-event-id") or request.query_params.get("after", "")
        after = int(given) if given.lstrip("-").isdecimal() else None
        return StreamingResponse(self._events(name, after), media_type="text/event-stream")

    async def _events(self, name: str, after: int | None) -> AsyncIterator[bytes]:
        """What is new, as server-sent events, until the run has ended."""
        said_s = time.monotonic()
        while not self.closing:
            last, finished_at = self._glance(name) or await self._looked(name)
            if last is not None and last != after:
                update = await self._updated(name, after, last)
                after, said_s = last, time.monotonic()
                yield update
                continue
            if finished_at is not None:
                yield _event("ended", {"finished_at": finished_at})
                return
            if time.monotonic() - said_s > ALIVE_EVERY_S:
                said_s = time.monotonic()
                yield b": nothing new\n\n"
            await asyncio.sleep(LOOK_EVERY_S)
        if (finished_at := (await run_in_threadpool(self._run, name)).finished_at) is not None:
            yield _event("ended", {"finished_at": finished_at})

    def _glance(self, name: str) -> Seen | None:
        """What somebody else has seen a moment ago."""
        at_s, seen = self._seen.get(name, (-math.inf, None))
        return seen if time.monotonic() - at_s < LOOK_EVERY_S else None

    async def _looked(self, name: str) -> Seen:
        """The run's last interval, and when it ended if it has; asked of the store once for all who watch."""
        async with self._looking:
            if (seen := self._glance(name)) is None:
                seen = await run_in_threadpool(self._look, name)
                self._seen[name] = time.monotonic(), seen
            return seen

    def _look(self, name: str) -> Seen:
        """As the store has it, in one question: it is asked four times a second."""
        series = self._series_of(name)
        found = self._store.select(_newest(), run=name)
        last, finished_at = (found[0].last, found[0].finished_at) if found else (None, None)
        return (last if last == series.last else series.refresh()), finished_at

    async def _updated(self, name: str, after: int | None, last: int) -> bytes:
        """What came after one interval, up to another; made once for all who have seen as much."""
        async with self._looking:
            if self._last_update[0] != (name, after, last):
                update = await run_in_threadpool(self._update, name, after, last)
                self._last_update = (name, after, last), update
            return self._last_update[1]

    def _update(self, name: str, after: int | None, last: int) -> bytes:
        """The moment is the same for all who watch, however much they have seen."""
        series = self._series_of(name)
        if self._last_moment[0] != (name, last):
            lately = self._lately.setdefault(name, Lately(self._store, name))
            shown = moment(self._store, self._run(name), last, series.start_s, lately)
            self._last_moment = (name, last), msgspec.Raw(msgspec.json.encode(shown))
        return _event("interval", {"series": series.since(after), "moment": self._last_moment[1]}, last)

    async def _orders(self, request: Request) -> Response:
        """What is in force, and, with the token, one more order."""
        bridge = self._bridge_to(request.path_params["run"])
        if bridge is None:
            raise HTTPException(404, NOT_HERE)
        return _json(await bridge.take(request) if request.method == "POST" else bridge.told())

    def _bridge_to(self, run: str) -> Bridge | None:
        """The way to the run, if it is the one that goes on here."""
        return self._bridge if self._bridge is not None and self._bridge.access.run == run else None

    async def _metrics(self, _request: Request) -> Response:
        if self._exposition is None:
            return PlainTextResponse(NOT_LIVE, status_code=404)
        try:
            content, kind = await run_in_threadpool(self._exposition)
        except PenstockError as error:
            return PlainTextResponse(f"{error}\n", status_code=503)
        return Response(content, headers={"content-type": kind})

    def _run(self, name: str) -> RunRow:
        query = sa.select(schema.runs).where(schema.runs.c.run == name)
        found = self._store.select(query)
        if not found:
            raise HTTPException(404, f"store {self._store}: has no run {name!r}")
        return RunRow(**found[0]._mapping)

    def _series_of(self, name: str) -> RunSeries:
        """The run's series, kept for the next who asks; of a few runs, the last that were asked for."""
        found = self._series.pop(name, None) or RunSeries(self._store, name)
        self._series[name] = found
        for old in [*self._series][:-MOST_RUNS_KEPT]:
            self._series.pop(old, None)
            self._seen.pop(old, None)
            self._lately.pop(old, None)
        return found


@cache
def _newest() -> sa.Select[Any]:
    """The number of a run's last interval, and when it ended."""
    run: sa.BindParameter[str] = sa.bindparam("run")
    newest = sa.select(sa.func.max(schema.intervals.c.number)).where(schema.intervals.c.run == run)
    query = sa.select(newest.scalar_subquery().label("last"), schema.runs.c.finished_at)
    return query.where(schema.runs.c.run == run)


def _file(name: str) -> Callable[[Request], Any]:
    async def page(_request: Request) -> Response:
        return FileResponse(STATIC / name, headers={"cache-control": "no-cache"})

    return page


async def _run_page(request: Request) -> Response:
    """The page of one run; what it is going to ask for is asked for while its scripts are still on their way."""
    api = f"/api/runs/{quote(request.path_params['run'], safe=_AS_IN_JAVASCRIPT)}"
    early = ", ".join(f"<{one}>; rel=preload; as=fetch; crossorigin" for one in (api, f"{api}/replicas"))
    return FileResponse(STATIC / "run.html", headers={"cache-control": "no-cache", "link": early})


async def _store_failed(_request: Request, error: Exception) -> Response:
    return PlainTextResponse(f"the store cannot be read: {type(error).__name__}\n", status_code=503)


def _json(value: object) -> Response:
    headers = {"cache-control": "no-store"}
    return Response(msgspec.json.encode(value), media_type="application/json", headers=headers)


def _event(kind: str, value: object, number: int | None = None) -> bytes:
    id_ = b"" if number is None else b"id: %d\n" % number
    return b"event: %s\n%sdata: %s\n\n" % (kind.encode(), id_, msgspec.json.encode(value))
