"""What a large run costs a browser: until the page is ready, and the main thread's time of an update."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from penstock.metrics.rows import IntervalRecord
from penstock.metrics.store import Store
from penstock.ui.listen import Listen
from penstock.ui.server import serving

sys.path.append(str(Path(__file__).parents[1]))

from tests.services.browser import program
from tests.services.tab import Tab

RUN = "large"
OPENED = 5
# Notes when tiles, graph and charts are drawn, when all is there, and how long it takes to draw an interval.
WATCH = """
window.took = [];
new MutationObserver(() => {
  if (document.querySelector("#tiles > *")) window.seenAt ??= performance.now();
  if (document.body?.dataset.ready) window.readyAt ??= performance.now();
}).observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ["data-ready"] });
const listen = EventSource.prototype.addEventListener;
EventSource.prototype.addEventListener = function (kind, told) {
  listen.call(this, kind, (event) => {
    const began = performance.now();
    told(event);
    if (kind === "interval") window.took.push(performance.now() - began);
  });
};
"""


def browser_cost(place: str, made: Callable[[int], IntervalRecord], updates: int) -> None:
    """Open the page some times, then watch it while an interval ends every second."""
    if program() is None:
        raise SystemExit("Chromium is not installed: apt-get install chromium")
    with TemporaryDirectory() as name, closing(Store(place)) as store, Tab(Path(name)) as tab:
        tab.do("Page.enable")
        tab.do("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        tab.do("Performance.enable", timeDomain="threadTicks")  # its own time, whatever else the machine does
        first = [opened(tab, store) for _ in range(OPENED)]
        for which, what in enumerate(("tiles, topology and charts are there", "all is there")):
            times = [one[which] for one in first]
            told = f"{times[0]:.0f} ms, then {median(times[1:]):.0f} ms (median of {OPENED - 1})"
            print(f"from the address, with a store unread, until {what}: {told}")
        with serving(store, Listen(port=0)) as url:
            tab.open(f"{url}run/{RUN}")
            watched(tab, store, made, updates)


def opened(tab: Tab, store: Store) -> list[float]:
    """Milliseconds from the address to the first view, and to all of it, with a server that has read nothing yet."""
    with serving(store, Listen(port=0)) as url:
        tab.open(f"{url}run/{RUN}")
        found: list[float] = tab.value("[window.seenAt, window.readyAt]")
        tab.do("Page.navigate", url="about:blank")
        return found


def watched(tab: Tab, store: Store, made: Callable[[int], IntervalRecord], updates: int) -> None:
    """So many intervals, one a second."""
    last = store.intervals(RUN)[-1].number
    time.sleep(2.0)  # what opening it has left to do
    spent_s = _main_thread_s(tab)
    for number in range(last + 1, last + 1 + updates):
        store.write(RUN, made(number))
        time.sleep(1.0)
    tab.until(f"window.took.length >= {updates}")
    spent_s = _main_thread_s(tab) - spent_s
    took_ms = sorted(tab.value("window.took"))
    print(f"an update: {1000 * spent_s / updates:.0f} ms of CPU of the main thread (mean of {updates})")
    print(f"from its arrival until it is drawn: {median(took_ms):.0f} ms (median), {took_ms[-1]:.0f} ms (longest)")


def _main_thread_s(tab: Tab) -> float:
    """All that the page's main thread has done so far: scripts, layout, painting."""
    found = tab.do("Performance.getMetrics")["metrics"]
    return float(next(one["value"] for one in found if one["name"] == "TaskDuration"))
