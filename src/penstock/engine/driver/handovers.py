"""The driver's part of hand-overs: one table for all who begin an attempt, time-outs, and files that can go."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

from penstock.engine.driver.routing import RoutingTable
from penstock.engine.protocol.messages import Reports
from penstock.errors import EngineError
from penstock.state.files import StateFiles
from penstock.state.handover import Coordinator, Table
from penstock.topology import ReplicaId

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.25
KEPT = 4  # generations whose tables are known

Coordinators = dict[str, Coordinator]


class Handovers:
    """Hears what replicas have handed over and taken; a thread looks after what takes too long."""

    def __init__(
        self,
        routing: RoutingTable,
        files: Mapping[str, StateFiles],
        timeout_s: float,
        roll_back: Callable[[], None],
    ) -> None:
        self._routing = routing
        self.files = self._files = files
        self._timeout_s = timeout_s
        self._roll_back = roll_back
        self._begun: dict[int, dict[str, Table]] = {}  # by generation: the tables with which it began
        self._holders: set[str] = set()
        self._holding = threading.Lock()
        self._since: dict[str, tuple[tuple[int, int], float]] = {}  # the change that goes on, how far, and since when
        self._processed: dict[ReplicaId, int] = {}  # by replicas of operators with state, in their last batch
        self._taken: dict[str, int] = {}  # what was handed over before this version has been removed
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="penstock-handovers", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        if self._files:
            self._thread.start()

    def stop(self) -> None:
        """Begin no other look."""
        self._stopped.set()

    def join(self, timeout_s: float = 30.0) -> None:
        """Wait until nobody looks: another driver may carry the run on in the same folder."""
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def tables(self, generation: int, *, alone: bool) -> dict[str, Table]:
        """Who owns which key groups as an attempt begins: the same for all who ask.

        If no other shift is at work, what was wished for is so from the beginning.
        """
        if generation not in self._begun:
            tables = self._routing.coordinate(_begin if alone else _as_they_are)
            self._begun = {one: kept for one, kept in self._begun.items() if one >= generation - KEPT} | {
                generation: tables
            }
        return self._begun[generation]

    # ── holding ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def hold_now(self, holder: str) -> bool:
        """Let no change begin; whether none goes on."""
        with self._holding:
            self._holders.add(holder)
            self._routing.coordinate(_hold)
        return not self._moving()

    def wished(self) -> bool:
        """Whether a change is wanted that may not begin."""
        return self._routing.coordinate(lambda all_: any(one.waits for one in all_.values()))

    def hold(self, holder: str) -> None:
        """Let no change begin, and wait until none goes on: the next shift begins with the same owners.

        What was wished before is done first: the next shift may lack the replicas that are to own nothing.
        """
        deadline = time.monotonic() + 2 * self._timeout_s
        while not (self._routing.coordinate(_at_rest) or holder in self._holders) or not self.hold_now(holder):
            if time.monotonic() > deadline or self._stopped.is_set():
                self.release(holder)
                raise EngineError(f"key groups were still moving after {2 * self._timeout_s:g} s")
            time.sleep(0.02)

    def release(self, holder: str) -> None:
        """Let changes begin again, unless another holds them."""
        with self._holding:
            self._holders.discard(holder)
            if not self._holders:
                self._routing.coordinate(_release)

    def settle(self) -> None:
        """While no batch is at work, and nobody looks: what was wished for is so."""
        self._routing.coordinate(_begin)
        self._try(self._remove)

    def hear(self, reports: Reports) -> None:
        """Take what replicas say that they have given and got, and how far they are."""
        for report in reports.reports:
            if report.operator in self._files:
                done = report.counters.processed + sum(report.counters.dropped.values())
                self._processed[report.operator, report.replica] = done
        for one in reports.state:
            self._routing.coordinate(lambda all_: all_[one.operator].hear(one.replica, one.handed, one.taken))  # noqa: B023

    def _watch(self) -> None:
        while not self._stopped.wait(LOOK_EVERY_S):
            self._try(lambda: self._look(time.monotonic()))

    def _try(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:  # a full disk, a folder that is gone: the next time may do better
            log.warning("state: %s", error)

    def _look(self, now_s: float) -> None:
        late = {name: one for name, one in self._moving().items() if self._is_late(name, *one, now_s)}
        for name, (table, missing) in late.items():
            log.warning(
                "operator %r: key groups %s did not get on within %g s, waiting for replicas %s: they stay",
                *(name, sorted(table.moved), self._timeout_s, list(missing)),
            )
        if late:
            self._roll_back()

    def _remove(self) -> None:
        """Remove the files of micro-batches that will not be done again."""
        for files in self._files.values():
            files.clean()

    def _moving(self) -> dict[str, tuple[Table, tuple[int, ...]]]:
        """The changes that go on, and whom they wait for; what has been taken is removed."""
        moving = {}
        for name, coordinator in self._routing.coordinate(dict).items():
            table, going = coordinator.table, coordinator.moving
            if going:
                moving[name] = (table, coordinator.missing)
            taken = table.version + (not going)
            if self._taken.get(name) != taken:
                self._files[name].forget_moves(before=taken)
                self._taken[name] = taken
        return moving

    def _is_late(self, name: str, table: Table, missing: tuple[int, ...], now_s: float) -> bool:
        """Whether nothing has come on for too long. A replica that works off what it has comes on to its switches."""
        losing = set(table.losers).intersection(missing)
        far = table.version, sum(self._processed.get((name, replica), 0) for replica in losing)
        if self._since.get(name, ((0, 0), 0.0))[0] != far:
            self._since[name] = (far, now_s)
        return now_s - self._since[name][1] > self._timeout_s


def _begin(coordinators: Coordinators) -> dict[str, Table]:
    return {name: coordinator.begin() for name, coordinator in coordinators.items()}


def _as_they_are(coordinators: Coordinators) -> dict[str, Table]:
    return {name: coordinator.table for name, coordinator in coordinators.items()}


def _at_rest(coordinators: Coordinators) -> bool:
    return not any(coordinator.moving or coordinator.waits for coordinator in coordinators.values())


def _hold(coordinators: Coordinators) -> None:
    for coordinator in coordinators.values():
        coordinator.held = True


def _release(coordinators: Coordinators) -> None:
    for coordinator in coordinators.values():
        coordinator.release()
