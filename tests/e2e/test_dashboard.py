"""The dashboard in a browser: what it shows is what the store has, now and at any point in time."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from typing import Any

import pytest
from PIL import Image

from penstock.control.orders import Freeze, Hold, Order, SetTd, Stop, UsePolicy, UseShadow
from penstock.control.steering import Steering, check_order
from penstock.metrics.rows import IntervalRecord, RunRow
from penstock.metrics.store import Store
from penstock.ui.access import Access
from penstock.ui.listen import Listen
from penstock.ui.server import serving
from penstock.ui.steer import Bridge

from ..services.tab import Tab
from .shown import box, go_to, number, percent, tile

MAKE = ["simulate", "twitter", "--trace", "rates.csv", "--duration", "600", "--td", "10", "--policy", "psps"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Of a simulation in which the load goes up and down."""
    folder = tmp_path_factory.mktemp("simulated")
    rates = "\n".join(f"{second},{40 + 80 * (second // 150 % 2)}" for second in range(0, 600, 10))
    (folder / "rates.csv").write_text(f"time_s,rate\n{rates}\n")
    command = [sys.executable, "-m", "penstock.cli", *MAKE, "--store", "run.db"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    with closing(Store(str(folder / "run.db"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def url(store: Store) -> Iterator[str]:
    with serving(store, Listen(port=0)) as address:
        yield address


def check(tab: Tab, store: Store, run: str, at: int) -> None:
    """What is on the page is what the store has of this interval."""
    interval = next(row for row in store.intervals(run) if row.number == at)
    assert tile(tab, "entered") == f"{number(interval.entered / interval.interval_s)}/s"
    assert tile(tab, "left") == f"{number(interval.source_output / interval.interval_s)}/s"
    assert tile(tab, "replicas") == str(interval.replicas)
    assert tile(tab, "backlog") == number(interval.backlog)
    late = {row.number: row.late for row in store.lateness(run)}
    if late:
        shares = [100 * late[at] / interval.latency_count if interval.latency_count else None]
        counts = {row.number: row.latency_count for row in store.intervals(run) if row.number <= at}
        shares.append(100 * sum(late[one] for one in counts) / sum(counts.values()))
        assert [tile(tab, "late"), tile(tab, "late so far")] == [percent(one) for one in shares]
    for row in store.operators(run):
        if row.number == at:
            texts = [one.lstrip("!‼ ") for one in box(tab, row.operator)]
            received, processed = (number(one / interval.interval_s) for one in (row.received, row.processed))
            assert texts[:2] == [row.operator, f"{row.replicas}/{row.pool}"]
            assert f"{received}/s → {processed}/s" in texts
            assert f"backlog {number(row.backlog)}" in texts


def test_the_page_shows_what_the_store_has_at_any_time(tab: Tab, url: str, store: Store) -> None:
    run = next(row.run for row in store.runs() if row.settings)
    tab.open(f"{url}run/{run}")
    numbers = [row.number for row in store.intervals(run)]
    check(tab, store, run, numbers[-1])
    tab.press("ArrowLeft")
    tab.until(f"document.getElementById('when').textContent.startsWith('interval {numbers[-2]},')")
    check(tab, store, run, numbers[-2])
    go_to(tab, numbers[20])
    check(tab, store, run, numbers[20])
    decisions = [one for one in store.decisions(run) if one.before != one.after and one.number <= numbers[20]]
    assert tab.value("document.querySelectorAll('#decisions tbody tr').length") == min(12, len(decisions))
    newest = tab.value("document.querySelector('#decisions .words').textContent")
    assert newest in [one.reason for one in decisions if one.number == decisions[-1].number]
    tab.press("Home")
    tab.until(f"document.getElementById('when').textContent.startsWith('interval {numbers[0]},')")
    check(tab, store, run, numbers[0])


def test_all_of_it_can_be_done_by_keyboard(tab: Tab, url: str, store: Store) -> None:
    tab.open(f"{url}run/{next(row.run for row in store.runs() if row.settings)}")
    tab.value("document.querySelector('[data-name=store]').focus()")
    tab.press("Enter")
    tab.until("document.querySelector('#operator h2').textContent === 'Operator store'")
    assert tab.value("document.activeElement.dataset.name") == "store", "where one was, one stays"


def test_a_run_that_goes_on_is_followed(tab: Tab, url: str, store: Store) -> None:
    """Intervals of the simulation, written again under another name while the page is open."""
    run = next(row.run for row in store.runs() if row.settings)
    store.start_run(RunRow(run="live", topology="twitter", policy="psps", td_s=10, started_at="2026-01-01T00:00:00Z"))
    for at in (1, 2, 3):
        store.write("live", again(store, run, at))
    tab.open(f"{url}run/live")
    tab.until("document.getElementById('state').textContent === 'live'")
    check(tab, store, "live", 3)
    tab.press("Home")
    tab.until("document.getElementById('when').textContent.startsWith('interval 1,')")
    store.write("live", again(store, run, 4))
    tab.until("slider.max === '4'")
    check(tab, store, "live", 1)  # who looks back is left there
    tab.press("End")
    tab.until("document.getElementById('when').textContent.startsWith('interval 4,')")
    store.write("live", again(store, run, 5))
    tab.until("document.getElementById('when').textContent.startsWith('interval 5,')")
    check(tab, store, "live", 5)
    store.finish_run("live", "2026-01-01T00:10:00Z")
    tab.until("document.getElementById('state').textContent === 'ended'")


def again(store: Store, run: str, at: int) -> IntervalRecord:
    """An interval of the run, as it was written."""

    def of(rows: list[Any]) -> tuple[Any, ...]:
        return tuple(row for row in rows if row.number == at)

    return IntervalRecord(
        interval=of(store.intervals(run))[0],
        operators=of(store.operators(run)),
        decisions=of(store.decisions(run)),
        waiting=of(store.waiting(run)),
    )


def test_two_runs_are_compared(tab: Tab, url: str, store: Store) -> None:
    run = next(row.run for row in store.runs() if row.settings)
    store.start_run(
        RunRow(run="half", topology="twitter", policy="static:1", td_s=10, started_at="2026-01-01T00:00:00Z")
    )
    for row in store.intervals(run)[:30]:
        store.write("half", again(store, run, row.number))
    store.finish_run("half", "2026-01-01T00:10:00Z")
    tab.open(url)
    for name in (run, "half"):
        tab.value(f"document.querySelector('#runs input[value=\"{name}\"]').click()")
    tab.value("document.getElementById('compare').click()")
    tab.until("location.pathname === '/compare' && document.body?.dataset.ready === 'yes'")
    rows = store.intervals(run)
    paid = [sum(row.replicas * row.interval_s for row in some) for some in (rows, rows[:30])]
    assert total(tab, "replica_seconds") == [number(one) for one in paid]
    late = sum(row.late for row in store.lateness(run))
    assert total(tab, "late_percent") == [f"{100 * late / sum(row.latency_count for row in rows):.2f} %", "–"]
    tab.look((390, 844))
    assert tab.value("document.documentElement.scrollWidth") == 390
    tab.open(f"{url}compare?a={run}&b=nobody")
    assert "has no run 'nobody'" in tab.value("document.getElementById('failure').textContent")


def total(tab: Tab, key: str) -> list[str]:
    script = f"[...document.querySelectorAll('[data-total={key}] td')].map((one) => one.textContent)"
    found: list[str] = tab.value(script)
    return found[:2]


def test_a_run_that_nobody_drives_here_cannot_be_steered(tab: Tab, url: str, store: Store) -> None:
    tab.open(f"{url}run/{next(row.run for row in store.runs() if row.settings)}")
    assert tab.value("document.getElementById('steer').hidden")


@pytest.mark.parametrize(("size", "dark"), [((1280, 900), False), ((1280, 900), True), ((390, 844), False)])
def test_it_fits_and_follows_the_owners_taste(
    tab: Tab, url: str, store: Store, size: tuple[int, int], dark: bool
) -> None:
    tab.look(size, dark=dark)
    run = next(row.run for row in store.runs() if row.settings)
    tab.open(f"{url}run/{run}")
    assert tab.value("document.documentElement.scrollWidth") == size[0], "nothing is cut off, or must be scrolled to"
    assert tab.value("document.getElementById('failure').hidden")
    picture = Image.open(BytesIO(tab.picture())).convert("L")
    paper = picture.getpixel((2, 2))
    assert (paper < 60) == dark
    inked = sum(count for shade, count in enumerate(picture.histogram()) if abs(shade - paper) > 60)
    assert inked > 0.01 * picture.width * picture.height


def test_all_runs_lead_to_their_pages(tab: Tab, url: str, store: Store) -> None:
    tab.open(url)
    links = tab.value("[...document.querySelectorAll('#runs a')].map((one) => one.textContent)")
    assert sorted(links) == sorted(row.run for row in store.runs())
    tab.value("document.querySelector('#runs a').click()")
    tab.until("location.pathname.startsWith('/run/') && document.body?.dataset.ready === 'yes'")


def test_a_run_that_is_not_there_is_said(tab: Tab, url: str) -> None:
    tab.open(f"{url}run/nobody")
    assert "has no run 'nobody'" in tab.value("document.getElementById('failure').textContent")


class Ship:
    """A run that notes its orders."""

    def __init__(self) -> None:
        self.steering = Steering()
        self.taken: list[tuple[Order, str]] = []

    def steer(self, order: Order, who: str) -> Steering:
        check_order(order, {"clean": 8, "store": 8, "classify": 8, "author": 8})
        self.taken.append((order, who))
        self.steering = self.steering.after(order)
        return self.steering


def test_orders_from_the_page_are_given_with_the_token_only(tab: Tab, store: Store) -> None:
    ship, run = Ship(), "steered"
    first = next(row.run for row in store.runs() if row.settings)
    store.start_run(RunRow(run=run, topology="twitter", policy="psps", td_s=10, started_at="2026-01-01T00:00:00Z"))
    store.write(run, again(store, first, 1))
    opened: list[Access] = []

    def bridge(url: str) -> Bridge:
        opened.append(Access.new(url, run, Listen()))
        return Bridge(ship, opened[0])

    with serving(store, Listen(port=0), bridge=bridge) as url:
        tab.open(f"{url}run/{run}")
        fill(tab, {"#name-of": "Ana", "#token": "guessed", "[aria-label='clean: replicas by hand']": "5"})
        click(tab, "tr[data-operator=clean] td:last-child button")
        tab.until("document.getElementById('answer').textContent.includes(\"needs the run's token\")")
        fill(tab, {"#token": opened[0].token, "[name=policy]": "cba:6", "[name=td_s]": "2.5"})
        click(tab, "tr[data-operator=clean] td:last-child button")
        tab.until("document.getElementById('answer').textContent === 'In force: clean by hand: 5 replicas.'")
        fill(tab, {"[aria-label='store: at most']": "9"})
        click(tab, "tr[data-operator=store] button")
        tab.until("document.getElementById('answer').textContent.includes('has a pool of 8; got 9')")
        click(tab, "#planning button")
        tab.until("document.getElementById('answer').textContent.includes('td 2.5 s')")
        fill(tab, {"[name=shadow]": "static:2"})
        click(tab, "#planning button")
        tab.until("document.getElementById('answer').textContent.includes('shadow static:2')")
        click(tab, "#freeze")
        tab.until("document.getElementById('freeze').textContent === 'Unfreeze'")
        button = "document.getElementById('stop')"  # forgets the first click after 5 s: both in one go
        asked = tab.value(f"({button}.click(), [{button}.textContent, {button}.click()][0])")
        assert asked == "Really stop the run?"
        tab.until("document.getElementById('answer').textContent.includes('stopping')")
    ana = "Ana (127.0.0.1)"
    assert ship.taken == [
        (order, ana)
        for order in (Hold("clean", 5), UsePolicy("cba:6"), SetTd(2.5), UseShadow("static:2"), Freeze(), Stop())
    ]


class Elsewhere(BaseHTTPRequestHandler):
    """A page of somebody else's, from which scripts may ask whom they like."""

    def do_GET(self) -> None:
        """Answer with it."""
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><body data-ready='yes'>")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def elsewhere() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.parametrize(
    "asking",
    [
        "{method: 'POST', body, headers: {authorization: `Bearer ${token}`, 'content-type': 'application/json'}}",
        "{method: 'POST', body, mode: 'no-cors', headers: {'content-type': 'text/plain'}}",
        "{}",
    ],
)
def test_a_foreign_page_reads_and_orders_nothing(tab: Tab, store: Store, asking: str) -> None:
    """Even if it knows the token: what the browser lets through is refused, and no answer can be read."""
    ship, run = Ship(), next(row.run for row in store.runs() if row.settings)
    opened: list[Access] = []

    def bridge(url: str) -> Bridge:
        opened.append(Access.new(url, run, Listen()))
        return Bridge(ship, opened[0])

    with serving(store, Listen(port=0), bridge=bridge) as url, elsewhere() as foreign:
        tab.open(foreign)
        known = f"const token = {json.dumps(opened[0].token)}, body = JSON.stringify({{order: 'freeze'}});"
        asked = f"fetch('{url}api/runs/{run}/orders', {asking}).then((one) => one.text(), () => '')"
        assert tab.value(f"(() => {{ {known} return {asked}; }})()") == ""
    assert ship.taken == []


def fill(tab: Tab, values: dict[str, str]) -> None:
    """Type into fields."""
    for selector, text in values.items():
        field = f"document.querySelector({json.dumps(selector)})"
        tab.value(f"({field}.value = {json.dumps(text)}, {field}.dispatchEvent(new Event('input')))")


def click(tab: Tab, selector: str) -> None:
    tab.value(f"document.querySelector({json.dumps(selector)}).click()")
