"""What a process's agent reports of a replica, and whom it wakes when there is news."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from penstock.engine.online.mailbox import Mailbox
from penstock.engine.protocol.messages import Done, OnlineNews, Report, StateReport
from penstock.engine.pull.post import RoomNote
from penstock.metrics.counters import ReplicaCounters


class Role:
    """One replica in one attempt, or in one micro-batch, as the agent reports it."""

    def __init__(self, report: Report, refresh: Callable[[ReplicaCounters], None], mail: Mailbox | None = None) -> None:
        self.report = report
        self.mail = mail or Mailbox()
        self._refresh = refresh
        self._sent = b""
        self.on_news: Callable[[], None] | None = None  # called when the driver has said something new
        self.on_room: Callable[[RoomNote], None] = _pass_over  # called when a replica that it sends to has room
        self.done: Done | None = None  # replaced as a whole: its part of the last checkpoint, and what it has shown
        self._done_sent: Done | None = None
        self.state: Callable[[], StateReport] | None = None
        self._state_sent: StateReport | None = None

    def changed(self) -> bool:
        """Whether there is something new to say."""
        self._refresh(self.report.counters)
        encoded = msgspec.msgpack.encode(self.report)
        changed, self._sent = encoded != self._sent, encoded
        return changed

    def state_news(self) -> list[StateReport]:
        """What it has handed over and taken, if that is new."""
        state = self.state() if self.state is not None else None
        if state is None or state == self._state_sent:
            return []
        self._state_sent = state
        return [state]

    def done_news(self) -> list[Done]:
        """What it has done for checkpoints, if that is new."""
        done = self.done
        if done is None or done is self._done_sent:
            return []
        self._done_sent = done
        return [done]

    def end(self) -> None:
        """The batch is over: what there is to say stays as it is, and nothing else of the replica is kept."""
        self._refresh(self.report.counters)
        self._refresh = lambda _: None
        self.on_news, self.on_room = None, _pass_over
        if self.state is not None:
            state = self.state()
            self.state = lambda: state

    def forget_sent(self) -> None:
        """Say it all again, the next time."""
        self._sent, self._state_sent, self._done_sent = b"", None, None
        self.mail.forget_told()

    def is_for(self, news: OnlineNews) -> bool:
        """Whether the driver means this replica, in this batch."""
        mine = self.report
        return (mine.generation, mine.batch, mine.operator, mine.replica) == (
            news.generation,
            news.batch,
            news.operator,
            news.replica,
        )


def _pass_over(_: RoomNote) -> None:
    """It sends to nobody who needs room, or no longer."""
