"""What viewers cost the process that serves the dashboard, and what one that never reads does to it and to others."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from penstock.metrics.rows import IntervalRecord
from penstock.metrics.store import Store
from penstock.ui.listen import Listen
from penstock.ui.server import serving

RUN = "large"
SMALL_BUFFER_BYTES = 4096
WITHIN_S = 300.0
Next = Callable[[int], IntervalRecord]  # the interval of a number


@dataclass
class Viewer:
    """Reads server-sent events, and notes when each interval came."""

    came_s: dict[int, float] = field(default_factory=dict)

    def watch(self, url: str) -> None:
        """Until the server ends."""
        try:
            with urllib.request.urlopen(url, timeout=WITHIN_S) as feed:
                for line in feed:
                    if line.startswith(b"id: "):
                        self.came_s[int(line[4:])] = time.monotonic()
        except OSError:
            return


@dataclass(frozen=True)
class Cost:
    """Of the serving process over a while, and how long after it was written an interval was there."""

    cpu_share: float
    by_interval_s: float
    grown_bytes: int
    delays_s: list[float]


def viewers_cost(place: str, made: Next, viewers: int, seconds: int) -> None:
    """Nobody, so many viewers, and as many beside one that never reads; an interval ends every second."""
    with closing(Store(place)) as store, served(place) as (process, url):
        api = f"{url}api/runs/{RUN}"
        urllib.request.urlopen(api).read()  # the store is read once
        writer = Writer(store, made, process)
        tell("nobody watches", writer.measured(seconds, []))
        watching = [Viewer() for _ in range(viewers)]
        for one in watching:
            threading.Thread(target=one.watch, args=(f"{api}/live?after={writer.last}",), daemon=True).start()
        writer.measured(3, watching)  # until all are there
        tell(f"{viewers} viewers", writer.measured(seconds, watching))
        with ExitStack() as left:
            left.callback(hanging(f"{api}/live").close)  # all of it first: more than buffers hold
            writer.measured(3, watching)
            tell(f"{viewers} viewers, and one that never reads", writer.measured(seconds, watching))


class Writer:
    """Writes an interval a second, and looks at what the serving process takes meanwhile."""

    def __init__(self, store: Store, made: Next, process: int) -> None:
        self._store, self._made, self._process = store, made, process
        self.last = store.intervals(RUN)[-1].number

    def measured(self, seconds: int, viewers: list[Viewer]) -> Cost:
        """So many intervals."""
        cpu_s, resident, began_s = cpu_of(self._process), resident_of(self._process), time.monotonic()
        written: dict[int, float] = {}
        for second in range(1, seconds + 1):
            self._store.write(RUN, self._made(self.last + 1))
            self.last += 1
            written[self.last] = time.monotonic()
            time.sleep(max(0.0, began_s + second - time.monotonic()))
        took_s = time.monotonic() - began_s
        cost_s, grown = cpu_of(self._process) - cpu_s, resident_of(self._process) - resident
        missing = [number for one in viewers for number in written if number not in one.came_s and number != self.last]
        if missing:
            print(f"  {len(missing)} intervals did not come, or not alone: {missing[:5]}")
        delays = [one.came_s[at] - when for one in viewers for at, when in written.items() if at in one.came_s]
        return Cost(cost_s / took_s, cost_s / seconds, grown, delays)


def tell(what: str, cost: Cost) -> None:
    """A line."""
    text = f"{what:40} {100 * cost.cpu_share:6.2f} % of a core, {1000 * cost.by_interval_s:5.1f} ms of CPU an interval"
    text += f", memory {cost.grown_bytes / 1e6:+.1f} MB"
    if cost.delays_s:
        text += f", an interval was there after {1000 * median(cost.delays_s):.0f} ms (median),"
        text += f" {1000 * max(cost.delays_s):.0f} ms (longest)"
    print(text, flush=True)


@contextmanager
def served(place: str) -> Iterator[tuple[int, str]]:
    """The dashboard in a process of its own: its number and address."""
    command = [sys.executable, str(Path(__file__)), place]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.pid, process.stdout.readline().strip()
        finally:
            process.communicate()  # which closes its input


def hanging(url: str) -> socket.socket:
    """A viewer that asks, and never reads."""
    parts = urlsplit(url)
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER_BYTES)
    opened.connect((parts.hostname, parts.port))
    opened.sendall(f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
    return opened


def cpu_of(process: int) -> float:
    """The CPU time of a process so far, of all its threads."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_of(process: int) -> int:
    """The bytes that it has in memory."""
    pages = Path(f"/proc/{process}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    with closing(Store(sys.argv[1], must_exist=True)) as kept, serving(kept, Listen(port=0)) as address:
        print(address, flush=True)
        sys.stdin.read()
