"""Where the events of the fault campaign come from and go to: a table of SQLite or PostgreSQL, or topics of Kafka."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import msgspec
import psutil
import sqlalchemy as sql
from faults_checker import DEAD_LETTER, RESULT, Result, Wanted
from history_stage import Topics, rows_of

sys.path.append(str(Path(__file__).parents[1]))  # the tests' services

QUIET_S = 5.0  # a topic is read to its end when nothing has come for so long
LOOK_S = 0.25
FED_EVERY_S = 0.25
FIRST_WITHIN_S = 120.0
FED = "fed"  # a file: all events are there


class Ends(Protocol):
    """Both ends of the stream, and how they can be hurt."""

    source: str
    sinks: tuple[str, str]
    level: str
    kinds: Sequence[str]  # the faults that can befall them

    def begin(self) -> None:
        """Have events come."""

    def finish(self) -> None:
        """Have the run end when all is there, if it does not by itself; called in a thread of its own."""

    def progress(self) -> object:
        """Something that is another one when results have come since."""

    def results(self) -> Iterator[dict[str, Any]]:
        """What readers see."""

    def letters(self) -> Iterator[dict[str, Any]]:
        """The dead letters that readers see."""

    def hurt(self, kind: str, seconds: float) -> None:
        """Have one of the faults, for so long."""

    def close(self) -> None:
        """End what was started."""


class SqliteEnds:
    """Events of the driver's own in, tables of SQLite out."""

    source: str = "events"
    kinds: Sequence[str] = ("store_locked",)

    def __init__(self, folder: Path, level: str) -> None:
        self.level = level
        self.url = f"sqlite:///{folder}/results.db"
        self.sinks = (f"{self.url}#results", f"{self.url}#letters")
        self._file = folder / "results.db"

    def begin(self) -> None:
        """They come with the run."""

    def finish(self) -> None:
        """It ends by itself."""

    def progress(self) -> object:
        """When the last row was stored, and how many there are."""
        engine = sql.create_engine(self.url)
        try:
            with engine.connect() as connection:
                found = connection.execute(sql.text("SELECT max(stored_at), count(*) FROM results")).one()
                return tuple(found)
        finally:
            engine.dispose()

    def results(self) -> Iterator[dict[str, Any]]:
        """The rows."""
        return rows_of(self.url, "results")

    def letters(self) -> Iterator[dict[str, Any]]:
        """The rows of the other table."""
        return rows_of(self.url, "letters")

    def hurt(self, kind: str, seconds: float) -> None:  # noqa: ARG002 - there is one
        """Keep all others from writing."""
        import sqlite3

        with closing(sqlite3.connect(self._file, isolation_level=None, timeout=60)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            time.sleep(seconds)
            connection.execute("ROLLBACK")

    def close(self) -> None:
        """Nothing is open."""


class PostgresEnds(SqliteEnds):
    """Events of the driver's own in, tables of a PostgreSQL of its own out."""

    kinds: Sequence[str] = ("store_locked", "kill_database", "stop_database")

    def __init__(self, folder: Path, level: str) -> None:
        from tests.services.database import Database

        super().__init__(folder, level)
        self._database = Database()
        self._database.start()
        self.url = self._database.url
        self.sinks = (f"{self.url}#results", f"{self.url}#letters")

    def hurt(self, kind: str, seconds: float) -> None:
        """Lock the tables, stop the server and its processes, or kill and start it again."""
        if kind == "store_locked":
            self._lock(seconds)
        elif kind == "stop_database":
            server = psutil.Process(self._database.pid)
            stopped = [server, *server.children(recursive=True)]
            each(stopped, "suspend")
            time.sleep(seconds)
            each(stopped, "resume")
        else:
            self._database.kill()
            time.sleep(seconds)
            self._database.start()

    def _lock(self, seconds: float) -> None:
        engine = sql.create_engine(self.url)
        with engine.begin() as connection:
            connection.execute(sql.text("LOCK TABLE results, letters IN ACCESS EXCLUSIVE MODE"))
            time.sleep(seconds)
        engine.dispose()

    def close(self) -> None:
        """End the server."""
        self._database.remove()


class Fed:
    """Events as files that somebody else writes at a rate, for a driver that knows no trace; mixed into tables."""

    source: str
    progress: Callable[[], Any]

    def feed_from(self, folder: Path, events: Sequence[Any], rate: float) -> None:
        """From `begin` on."""
        self._inbox, self._fed = folder / "in", folder / FED
        self._inbox.mkdir()
        self.source = str(self._inbox)
        self._events, self._rate, self._size = events, rate, max(1, round(rate * FED_EVERY_S))

    def begin(self) -> None:
        """Have events come; some beforehand, as the first batch of a query takes long."""
        self._put(0)
        deadline = time.monotonic() + FIRST_WITHIN_S
        while not self._shows() and time.monotonic() < deadline:
            time.sleep(LOOK_S)
        threading.Thread(target=self._feed, daemon=True).start()

    def _shows(self) -> bool:
        try:
            return bool(self.progress()[1])
        except Exception:  # no table yet
            return False

    def _feed(self) -> None:
        began_s = time.monotonic()
        for first in range(self._size, len(self._events), self._size):
            time.sleep(max(0.0, began_s + first / self._rate - time.monotonic()))
            self._put(first)
        self._fed.touch()

    def _put(self, first: int) -> None:
        hidden = self._inbox / f".{first:09}"
        hidden.write_bytes(b"\n".join(map(msgspec.json.encode, self._events[first : first + self._size])))
        hidden.rename(self._inbox / f"{first:09}.json")


class PlainSqliteEnds(Fed, SqliteEnds):
    """Files in, tables of SQLite out."""


class PlainPostgresEnds(Fed, PostgresEnds):
    """Files in, tables of PostgreSQL out."""


class KafkaEnds:
    """From topic to topic, on a broker of its own; results are read committed."""

    kinds: Sequence[str] = ("kill_broker", "stop_broker")

    def __init__(self, folder: Path, level: str, events: Sequence[Any], wanted: Sequence[Wanted], rate: float) -> None:
        self.level = level
        self._topics = Topics(folder, events, rate, key="name", kill=False)
        self._topics.kafka.create("letters", partitions=3)
        self._due = {fate: sum(one.fate == fate for one in wanted) for fate in (RESULT, DEAD_LETTER)}
        address = self._topics.kafka.address
        self.source = f"kafka://{address}/queries?group=faults"
        self.sinks = (f"kafka://{address}/results", f"kafka://{address}/letters")
        self._stop = folder / "stop"

    def begin(self) -> None:
        """Begin to produce."""
        self._topics.begin()

    def finish(self) -> None:
        """Wait until readers have as many results and letters as there must be; then have the run end."""
        self._topics.await_produced()
        for topic, fate in (("results", RESULT), ("letters", DEAD_LETTER)):
            seen = [0]
            for _ in self._topics.read(topic, lambda seen=seen, fate=fate: seen[0] >= self._due[fate]):  # type: ignore[misc]
                seen[0] += 1
        self._stop.touch()

    def progress(self) -> object:
        """The ends of the topic's partitions."""
        return self._topics.ends("results")

    def results(self) -> Iterator[dict[str, Any]]:
        """All messages, until none has come for a while."""
        return self._topics.read_all("results", QUIET_S)

    def letters(self) -> Iterator[dict[str, Any]]:
        """All messages of the other topic."""
        return self._topics.read_all("letters", QUIET_S)

    def hurt(self, kind: str, seconds: float) -> None:
        """Stop the broker, or kill it and start it again."""
        kafka = self._topics.kafka
        if kind == "stop_broker":
            with kafka.paused():
                time.sleep(seconds)
        else:
            kafka.kill()
            time.sleep(seconds)
            kafka.start()

    def close(self) -> None:
        """End the broker."""
        self._topics.close()


def each(processes: Sequence[psutil.Process], method: str) -> None:
    """Do this to all of them that are still there."""
    for one in processes:
        with suppress(psutil.Error):
            getattr(one, method)()


def as_results(events: Iterator[dict[str, Any]]) -> Iterator[Result]:
    """What the checker reads of them."""
    return (Result(one["number"], one["name"], one["domain"], one["of_name"], one["of_domain"]) for one in events)


def as_numbers(letters: Iterator[dict[str, Any]]) -> Iterator[int]:
    """Which events the dead letters are of."""
    return chain(one["event"]["number"] for one in letters)
