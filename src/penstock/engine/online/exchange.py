"""The driver's part in the online shuffle: it hands on what replicas have learnt to those who send to them.

Every sketch and reply gets a number when it comes in. A sending replica says with each report up to which number it
knows everything, and is answered with what is newer. So what was lost on the way is sent again, and what is known is
not. Of each replica only the newest sketch is kept, and of each reply the newest.
"""

from __future__ import annotations

import threading
from collections import Counter

from penstock.engine.protocol.messages import OnlineNews, OnlineReport, ReplyOf, Reports, SketchOf
from penstock.topology import ReplicaId

Time = tuple[int, int]  # generation and batch


class Exchange:
    """Online reports in, news out; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._number = 0
        self._sketches: dict[ReplicaId, tuple[tuple[Time, int], int, SketchOf]] = {}  # made when, number, sketch
        self._replies: dict[ReplicaId, dict[ReplicaId, tuple[Time, int, ReplyOf]]] = {}  # by sender, by who replies
        self._states: dict[ReplicaId, tuple[Time, dict[str, str]]] = {}

    def enter(self, reports: Reports) -> list[OnlineNews]:
        """Take what one process has to say, and give what is new to it."""
        if not reports.online:
            return []
        with self._lock:
            for report in reports.online:
                self._take(report, (report.generation, report.batch))
            return [news for report in reports.online if report.states and (news := self._news_for(report))]

    def states(self) -> dict[str, dict[str, int]]:
        """For each operator that is sent to by online shuffle, how many senders are in which state."""
        with self._lock:
            newest = max((time for time, _ in self._states.values()), default=(0, 0))
            now = [states for time, states in self._states.values() if time == newest]
        receivers = dict.fromkeys(receiver for states in now for receiver in states)
        return {name: dict(Counter(states[name] for states in now if states.get(name))) for name in receivers}

    def _take(self, report: OnlineReport, time: Time) -> None:
        replica = (report.operator, report.replica)
        if report.sketch is not None:
            self._take_sketch(replica, (time, report.number), SketchOf(*replica, report.sketch))
        for reply in report.replies:
            heard = self._replies.setdefault((reply.sender, reply.replica), {})
            if replica not in heard or heard[replica][0] <= time:
                self._number += 1
                heard[replica] = (time, self._number, ReplyOf(*replica, reply.epoch, reply.delta_s))
        if report.states and self._states.get(replica, (time,))[0] <= time:
            self._states[replica] = (time, report.states)

    def _take_sketch(self, replica: ReplicaId, made: tuple[Time, int], sketch: SketchOf) -> None:
        if replica not in self._sketches or self._sketches[replica][0] < made:
            self._number += 1
            self._sketches[replica] = (made, self._number, sketch)

    def _news_for(self, sender: OnlineReport) -> OnlineNews | None:
        time, known = (sender.generation, sender.batch), sender.known
        sketches = [
            sketch
            for _, number, sketch in self._sketches.values()
            if number > known and sketch.operator in sender.states
        ]
        heard = self._replies.get((sender.operator, sender.replica), {}).values()
        replies = [reply for at, number, reply in heard if number > known and at == time]
        if not sketches and not replies:
            return None
        return OnlineNews(*time, sender.operator, sender.replica, self._number, sketches, replies)
