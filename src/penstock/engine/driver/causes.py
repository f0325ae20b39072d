"""What a query died of: of which kind, and in one sentence. The one place where kinds are read out of text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

LONGEST = 500  # characters of a sentence
SENTENCES = (
    r"penstock\.errors\.\w+: (.+)",
    r"Python worker exited unexpectedly[^\n]*",
    r"ExecutorLostFailure[^\n]*",
    r"\n(\w*Error: .+)",
)
UNSEEN = re.compile(r"worker .* does not see what the run keeps in ")
CONSEQUENCE = re.compile("streaming shuffle writer|ClosedChannelException")
ENVIRONMENT = re.compile(
    r"Python worker exited unexpectedly|ExecutorLostFailure|[Ee]xecutor heartbeat timed out|IOException: Broken pipe"
    r"|\b(Connection(Refused|Reset|Aborted)?|BrokenPipe|Timeout|AMQPConnection)Error\b"
    r"|[Cc]onnection (was |is )?(refused|reset|aborted|closed|lost|timed out)|[Cc]onnection to .{1,80} (failed|closed)"
    r"|closed the connection|terminating connection|the database system is|database is locked|too many clients"
    r"|No space left on device|disk (is )?full|quota exceeded|Read-only file system|Input/output error"
    r"|Too many open files|Cannot allocate memory|No route to host|Network is (down|unreachable)"
    r"|AWS Error (NETWORK_CONNECTION|SERVICE_UNAVAILABLE|SLOW_DOWN|THROTTLING|REQUEST_TIMEOUT|INTERNAL_FAILURE)"
    r"|name resolution|Name or service not known|BROKER_NOT_AVAILABLE|_TRANSPORT|_ALL_BROKERS_DOWN|_TIMED_OUT"
)


class Kind(Enum):
    """Kinds of causes, by what is done about them."""

    ENVIRONMENT = auto()  # a worker or executor lost or silent, a connection, a full disk
    CONSEQUENCE = auto()  # the other end of a shuffle is gone: a task says so after its predecessor or reader died
    EVENT = auto()  # an event failed
    UNSEEN = auto()  # a worker does not see the run's folder, before somebody has mended it
    RENEWED = auto()  # the driver had it begin again
    PROGRAM = auto()  # anything else


@dataclass(frozen=True, slots=True)
class Cause:
    """What a query died of."""

    kind: Kind
    text: str

    @property
    def outside(self) -> bool:
        """Whether the environment did it, and not the program or an event."""
        return self.kind in {Kind.ENVIRONMENT, Kind.CONSEQUENCE}

    @property
    def event(self) -> str | None:
        """Operator, error and id of the event that failed, if one did."""
        return failed_event(self.text) if self.kind is Kind.EVENT else None

    def __str__(self) -> str:
        return self.text


def cause_of(error: Any, before: str = "") -> Cause:
    """The one sentence of a stack trace, of Spark's or Python's, that a person wants to read, and its kind.

    >>> cause_of(RuntimeError("Lost task 0.0: Python worker exited unexpectedly (crashed)"))
    Cause(kind=<Kind.ENVIRONMENT: 1>, text='Python worker exited unexpectedly (crashed)')
    """
    sentence = before + _sentence(error)
    return Cause(kind_of(sentence), sentence)


def kind_of(sentence: str) -> Kind:
    """The kind of a cause that is known from its words only.

    >>> kind_of("operator 'store' (app.py:3): open failed: ConnectionRefusedError: [Errno 111] Connection refused").name
    'ENVIRONMENT'
    >>> kind_of("operator 'parse' (app.py:3): ValueError: no; on event 41: 'Connection refused'").name
    'EVENT'
    """
    said = sentence.partition("; on event ")[0]  # what the event says is not the fault's
    if UNSEEN.match(said):
        return Kind.UNSEEN
    if CONSEQUENCE.search(said):
        return Kind.CONSEQUENCE
    if ENVIRONMENT.search(said):
        return Kind.ENVIRONMENT
    return Kind.PROGRAM if failed_event(sentence) is None else Kind.EVENT


def failed_event(sentence: str) -> str | None:
    """Operator, error and id of the event that a query died of, if it did.

    >>> failed_event("operator 'parse' (app.py:3): ValueError: no; on event 41: {'n': 7}")
    "operator 'parse' (app.py:3): ValueError: no; on event 41"
    """
    found = re.match(r"(?:operator|source) .+?; on event \S+?(?=: )", sentence)
    return found[0] if found else None


def _sentence(error: Any) -> str:
    text = str(error or "").strip() or (repr(error) if error else "it ended without saying why")
    for pattern in SENTENCES:
        if found := re.search(pattern, text):
            return found[1] if found.groups() else found[0]
    return text.splitlines()[0][:LONGEST]
