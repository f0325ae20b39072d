"""The dashboard's answers: what the store has, and only to those who may ask."""

from __future__ import annotations

import dataclasses
import http.client
import json
import socket
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit

import pytest

from penstock.metrics.rows import SteeringRow
from penstock.metrics.store import Store
from penstock.ui.app import LOOK_EVERY_S, Dashboard, Seen
from penstock.ui.listen import Listen
from penstock.ui.moment import moment
from penstock.ui.server import serving
from tests.waiting import LONG_S

from .conftest import RUN, Make


def answer(url: str, method: str = "GET", **headers: str) -> tuple[int, str, http.client.HTTPMessage]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method, headers=named), timeout=LONG_S) as found:
            return found.status, found.read().decode(), found.headers
    except HTTPError as error:
        with error:
            return error.code, error.read().decode(), error.headers


def read(url: str) -> Any:
    status, text, _ = answer(url)
    assert status == 200, text
    return json.loads(text)


def test_all_runs_are_listed_as_the_store_has_them(url: str, store: Store) -> None:
    assert read(f"{url}api/runs")["runs"] == [{**dataclasses.asdict(store.run(RUN)), "intervals": 3}]


def test_the_series_are_those_of_the_store(url: str, store: Store) -> None:
    series = read(f"{url}api/runs/{RUN}")["series"]
    rows = store.intervals(RUN)
    assert series["numbers"] == [row.number for row in rows]
    assert series["times_s"] == [2.0, 4.0, 6.0]  # since the first interval began
    mean = series["mean"]
    assert mean["entered"] == [row.entered / row.interval_s for row in rows]
    assert mean["left"] == [row.source_output / row.interval_s for row in rows]
    assert mean["replicas"] == [row.replicas for row in rows]
    assert mean["backlog"] == [row.backlog for row in rows]
    assert mean["p99_ms"] == [90.0, None, 90.0]
    assert (mean["held"], mean["booked"], mean["outside"]) == ([1, 1, 1], [2, 4, 6], [3, 3, 3])
    assert mean["late_percent"] == [0.0, 0.0, 33.33]  # one of three events


def test_a_forecast_is_shown_beside_what_came(url: str) -> None:
    """Of the second interval, what the first expected; of the third, also what the first did two steps ahead."""
    mean = read(f"{url}api/runs/{RUN}")["series"]["mean"]
    assert mean["expected"] == [None, 110.0, 210.0]
    assert (mean["expected_low"], mean["expected_high"]) == ([None, 110.0, 120.0], [None, 110.0, 210.0])


def test_a_point_in_time_has_the_rows_of_its_interval(url: str, store: Store) -> None:
    found = read(f"{url}api/runs/{RUN}/at/2")
    assert found["interval"] == dataclasses.asdict(store.intervals(RUN)[1])
    shown = {one["operator"]: one for one in found["operators"]}
    for row in store.operators(RUN):
        if row.number == 2:
            assert dataclasses.asdict(row).items() <= shown[row.operator].items()
    assert [shown["split"][where] for where in ("held", "booked", "outside")] == [1, 4, 3]
    assert shown["count"]["planned"] == [3]
    assert shown["split"]["waiting_s"] == 20 * 2.0 / 100
    assert found["sources"] == [{"name": "lines", "rate": 200.0, "expected": [210.0, 220.0]}]
    assert [(one["number"], one["reason"]) for one in found["decisions"]] == [(2, "r2")] * 2 + [(1, "r1")] * 2
    assert [one["worker"] for one in found["workers"]] == ["w0"]


def test_a_point_in_time_knows_nothing_of_what_came_later(url: str) -> None:
    found = [read(f"{url}api/runs/{RUN}/at/{number}") for number in (1, 2, 3)]
    assert [len(one["managers"]) for one in found] == [1, 2, 3]
    assert [len(one["faults"]) for one in found] == [0, 1, 1]
    assert [len(one["pauses"]) for one in found] == [0, 0, 1]
    assert found[1]["faults"][0]["time_s"] == 3.0  # since the start


def test_late_events_are_told_with_what_was_promised(url: str) -> None:
    found = [read(f"{url}api/runs/{RUN}/at/{number}")["promise"] for number in (2, 3)]
    assert found[0] == {"late": 0.01, "target_ms": 80.0, "so_far": 0.0, "now": 0.0}
    assert found[1] == {"late": 0.01, "target_ms": 80.0, "so_far": 1 / 6, "now": 1 / 3}


def test_orders_are_told_as_they_were_in_force_at_that_time(url: str, store: Store) -> None:
    for number, order in enumerate([{"order": "freeze"}, {"order": "unfreeze"}]):
        row = SteeringRow(sequence=number, time_s=13.0 + 2 * number, given_at="then", who="Ana", order=order)
        store.write_order(RUN, row)
    found = [read(f"{url}api/runs/{RUN}/at/{number}")["steering"] for number in (1, 2, 3)]
    assert [one["in_force"]["told"] for one in found] == [[], ["frozen"], []]
    assert [[order["who"] for order in one["orders"]] for one in found] == [[], ["Ana"], ["Ana", "Ana"]]
    assert found[2]["orders"][0]["told"] == "unfreeze: the policy decides again"


def test_between_intervals_the_one_before_is_shown(url: str) -> None:
    assert read(f"{url}api/runs/{RUN}/at/99")["number"] == 3


def test_one_operator_and_all_replicas_over_time(url: str) -> None:
    found = read(f"{url}api/runs/{RUN}/operators/count")
    assert found["number"] == [1, 2, 3]
    assert found["processed"] == [50.0, 50.0, 50.0]
    assert found["backlog"] == [10, 20, 30]
    replicas = read(f"{url}api/runs/{RUN}/replicas")
    assert replicas == {"numbers": [1, 2, 3], "replicas": {"count": [1, 2, 3], "split": [1, 2, 3]}}


def test_what_the_page_will_ask_for_is_asked_for_while_its_scripts_load(url: str) -> None:
    """Under the names that its scripts ask for; a name is not a way to say more in a header."""
    _, _, headers = answer(f"{url}run/a%20b%3E,'%C3%A9")
    api = "/api/runs/a%20b%3E%2C'%C3%A9"
    early = [f"<{one}>; rel=preload; as=fetch; crossorigin" for one in (api, f"{api}/replicas")]
    assert headers["link"] == ", ".join(early)


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("api/runs/other", "has no run 'other'"),
        (f"api/compare?a={RUN}&b=other", "has no run 'other'"),
        ("api/compare", "has no run ''"),
        (f"api/runs/{RUN}/at/0", f"run '{RUN}': has no interval up to 0"),
        (f"api/runs/{RUN}/operators/none", f"run '{RUN}': has no operator 'none'"),
        ("metrics", "metrics are of a run that goes on"),
    ],
)
def test_what_is_not_there_is_said(url: str, path: str, sentence: str) -> None:
    status, text, _ = answer(url + path)
    assert status == 404
    assert sentence in text


@contextmanager
def feed(url: str, after: int) -> Iterator[http.client.HTTPResponse]:
    with closing(http.client.HTTPConnection(urlsplit(url).netloc, timeout=LONG_S)) as connection:
        connection.request("GET", f"/api/runs/{RUN}/live?after={after}")
        with connection.getresponse() as lines:
            yield lines


def event(lines: http.client.HTTPResponse) -> tuple[str, Any]:
    found = {}
    while line := lines.readline().decode().strip():
        name, _, value = line.partition(": ")
        found[name] = value
    return found["event"], json.loads(found["data"])


def test_an_interval_is_sent_when_it_ends_and_nothing_twice(url: str, store: Store, make: Make) -> None:
    with feed(url, 3) as live:
        store.write(RUN, make(4))
        kind, told = event(live)
        assert kind == "interval"
        assert told["series"]["numbers"] == [4]
        assert told["moment"]["number"] == 4
        store.write(RUN, make(5))
        assert event(live)[1]["series"]["numbers"] == [5]
        store.finish_run(RUN, "2026-01-01T00:01:00Z")
        assert event(live) == ("ended", {"finished_at": "2026-01-01T00:01:00Z"})
        assert live.read() == b""


def test_a_moment_is_made_once_for_all_who_watch(
    url: str, store: Store, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for one that is behind: each had its own made."""
    made: list[int] = []

    def counted(*given: Any) -> Any:
        made.append(given[2])
        return moment(*given)

    monkeypatch.setattr("penstock.ui.app.moment", counted)
    with feed(url, 3) as one, feed(url, 3) as another, feed(url, 2) as behind:
        assert event(behind)[1]["series"]["numbers"] == [3]
        store.write(RUN, make(4))
        told = [event(live)[1] for live in (one, another, behind)]
    assert [found["moment"]["number"] for found in told] == [4, 4, 4]
    assert made == [3, 4]


def test_a_new_interval_reaches_the_page_within_a_second(
    url: str, store: Store, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look that begins when it is there finds it, and there are several a second; machines may be busy."""
    assert 2 * LOOK_EVERY_S < 1.0
    seen: list[int | None] = []  # by looks; None while one goes on
    look = Dashboard._look

    def noted(dashboard: Dashboard, name: str) -> Seen:
        seen.append(None)
        seen[-1], ended = look(dashboard, name)
        return seen[-1], ended

    monkeypatch.setattr(Dashboard, "_look", noted)
    with feed(url, 3) as live:
        for number in range(4, 9):
            store.write(RUN, make(number))
            begun = len(seen)
            assert event(live)[1]["moment"]["number"] == number
            assert all(one in (None, number) for one in seen[begun:])


def test_a_viewer_that_reads_nothing_keeps_nobody_waiting(url: str, store: Store, make: Make) -> None:
    where = urlsplit(url)
    with socket.create_connection((where.hostname, where.port)) as hanging:
        hanging.sendall(f"GET /api/runs/{RUN}/live?after=0 HTTP/1.1\r\nHost: {where.netloc}\r\n\r\n".encode())
        for number in range(4, 24):
            store.write(RUN, make(number))
            assert read(f"{url}api/runs/{RUN}/at/{number}")["number"] == number


def test_the_server_stops_with_viewers_on_the_line(store: Store) -> None:
    with serving(store, Listen(port=0)) as url:
        hanging = feed(url, 3)
        hanging.__enter__()
        assert any(thread.name == "penstock-ui" for thread in threading.enumerate())
    assert not any(thread.name == "penstock-ui" for thread in threading.enumerate())
    hanging.__exit__(None, None, None)


@pytest.mark.parametrize("path", ["", f"run/{RUN}", "compare", "api/runs", f"api/runs/{RUN}", "static/run.js"])
def test_nothing_is_changed_through_it(url: str, path: str) -> None:
    assert {answer(url + path, method)[0] for method in ("POST", "PUT", "DELETE", "PATCH")} == {405}


def test_a_name_that_leads_here_is_refused(url: str) -> None:
    """DNS rebinding: evil.example resolves to 127.0.0.1, and its page asks as if for its own."""
    status, text, headers = answer(f"{url}api/runs", Host="evil.example:80")
    assert (status, "evil.example" in text) == (403, True)
    assert headers["x-content-type-options"] == "nosniff"


def test_pages_of_others_are_refused(url: str) -> None:
    assert answer(f"{url}api/runs", Origin="https://evil.example")[0] == 403
    assert answer(f"{url}api/runs", Origin="null")[0] == 403
    assert answer(f"{url}api/runs", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors")[0] == 403
    assert answer(f"{url}api/runs", Sec_Fetch_Site="same-site", Sec_Fetch_Mode="cors")[0] == 403
    assert answer(url, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")[0] == 200  # a link
    assert answer(f"{url}api/runs", Origin=url.rstrip("/"))[0] == 200


def test_nothing_may_be_loaded_from_elsewhere(url: str) -> None:
    _, page, headers = answer(f"{url}run/{RUN}")
    assert "default-src 'self'" in headers["content-security-policy"]
    assert "access-control-allow-origin" not in headers
    assert "//" not in page.replace("<!doctype html>", "")
