"""Where replicas listen for what others send straight to them: heard from each, and told to all at once."""

from __future__ import annotations

from collections.abc import Collection

from penstock.engine.driver.channel import Publisher
from penstock.engine.protocol.messages import Place, Places, Reports
from penstock.topology import ReplicaId

KEPT_ATTEMPTS = 4  # of two shifts, and of those before them


class _Attempt:
    """Whose place is wanted, and what was heard."""

    def __init__(self, replicas: Collection[ReplicaId]) -> None:
        self._wanted = frozenset(replicas)
        self.heard: dict[ReplicaId, Place] = {}

    @property
    def whole(self) -> bool:
        return self._wanted <= self.heard.keys()


class PlaceBook:
    """What replicas have said, by attempt; once all of an attempt have, everyone is told and needs nobody to ask."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher
        self._attempts: dict[int, _Attempt] = {}  # by generation
        self._version = 0

    def begin(self, generation: int, replicas: Collection[ReplicaId]) -> None:
        """An attempt is about to start, with these replicas of operators: nothing has been heard of it yet."""
        self._attempts[generation] = _Attempt(replicas)
        for old in sorted(self._attempts)[:-KEPT_ATTEMPTS]:
            del self._attempts[old]

    def hear(self, reports: Reports) -> None:
        """Take what reports say of it; on the control channel's thread only."""
        news = False
        for one in reports.reports:
            attempt = self._attempts.get(one.generation)
            if one.place is None or attempt is None:
                continue
            replica, place = (one.operator, one.replica), Place(one.operator, one.replica, one.place)
            if attempt.heard.get(replica) != place:
                attempt.heard[replica] = place
                news |= attempt.whole
        if news:
            self._tell()

    def _tell(self) -> None:
        self._version += 1
        attempts = self._attempts.copy().items()
        whole = {generation: list(one.heard.values()) for generation, one in attempts if one.whole}
        self._publisher.publish(Places(self._version, whole))
