"""What one replica says and hears about the times of events, for the online shuffle, between two reports.

The replica's own thread writes and reads here, its process's agent carries.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from penstock.engine.protocol.messages import OnlineNews, OnlineReport, ReplyOf, ReplyTo, Report
from penstock.grouping.online_shuffle import Sketch


@dataclass(frozen=True, slots=True)
class News:
    """What has been heard of an operator that the replica sends to, and not been looked at."""

    replies: deque[ReplyOf] = field(default_factory=deque)
    sketches: dict[int, Sketch] = field(default_factory=dict)  # the newest of each replica


class Mailbox:
    """The mail of one replica in one attempt."""

    def __init__(self) -> None:
        self.states: dict[str, str] = {}  # by operator that it sends to: the state of its scheduler
        self._news: dict[str, News] = {}
        self._known = 0
        self._sketch: Sketch | None = None
        self._number = 0  # sketches so far
        self._told = 0  # the last of them that the driver was told
        self._replies: deque[ReplyTo] = deque()

    def subscribe(self, operator: str) -> News:
        """Where news of the operator's replicas will be found."""
        self.states[operator] = ""
        return self._news.setdefault(operator, News())

    def tell(self, sketch: Sketch | None, replies: list[ReplyTo]) -> None:
        """Have the driver told; of several sketches the last one."""
        if sketch is not None:
            self._sketch, self._number = sketch, self._number + 1
        self._replies += replies

    def deliver(self, news: OnlineNews) -> None:
        """Take what the driver says, unless it is known."""
        if news.number <= self._known:
            return
        for reply in news.replies:
            self._news[reply.operator].replies.append(reply)
        for one in news.sketches:
            self._news[one.operator].sketches[one.replica] = one.sketch
        self._known = news.number

    def collect(self, whose: Report) -> OnlineReport | None:
        """What there is to say; None if this replica has nothing to do with the online shuffle, or nothing is new."""
        number, sketch = self._number, self._sketch
        replies = [self._replies.popleft() for _ in range(len(self._replies))]
        if not self.states and not replies and number == self._told:
            return None
        report = OnlineReport(whose.generation, whose.batch, whose.operator, whose.replica)
        report.replies, report.states, report.known = replies, self.states, self._known
        if number != self._told:
            report.sketch, report.number, self._told = sketch, number, number
        return report

    def forget_told(self) -> None:
        """Tell the last sketch again, the next time."""
        self._told = 0

    def close(self) -> None:
        """The batch is over: nothing is wanted any more."""
        self.states = {}
