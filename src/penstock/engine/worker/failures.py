"""Events that fail: tried again, dropped, sent on as dead letters, or the end of the run, as `on_error` says.

A dead letter is a mapping: `operator` and `replica`, the `id` of the event, the `event` itself, the `error`, and the
`line` of the user's code that raised it. Its own id is the event's with the operator's name behind it: the same each
time the event is repeated, and another one in each operator.
"""

from __future__ import annotations

import base64
import linecache
import logging
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

import msgspec
import numpy as np

from penstock.engine.plan.program import Program
from penstock.engine.protocol.bundle import HASH, Events, Unpacker
from penstock.errors import EngineError, InputError, PenstockError
from penstock.metrics.counters import ReplicaCounters
from penstock.topology.on_error import parse_on_error

log = logging.getLogger(__name__)

Cause = tuple[str, float, Any]  # id, time of birth and value of the event that something came of
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 5.0
LOG_EVERY_S = 1.0
SHOWN = 1000  # characters of an event, in an error
_PENSTOCK = f"{Path(__file__).resolve().parents[2]}/"
_LIBRARIES = tuple(f"{sysconfig.get_path(name)}/" for name in ("stdlib", "purelib", "platlib"))
_raw = Unpacker(msgspec.Raw)


class Failures:
    """What one replica, or slot of a source, does with the events that fail."""

    def __init__(
        self, program: Program, name: str, replica: int, counters: ReplicaCounters, send: Callable[[Cause], None]
    ) -> None:
        self._label = program.labels.get(name, name)
        self._name = name
        self._replica = replica
        self._counters = counters
        self._send = send  # a dead letter
        self._rule = parse_on_error(program.on_error.get(name, "fail"))
        self._untold = 0
        self._last = ""
        self._told_s = -LOG_EVERY_S

    @property
    def at_once(self) -> bool:
        """Whether the first event that fails ends the run."""
        return self._rule.then == "fail" and not self._rule.retries

    @property
    def ends_run(self) -> bool:
        """Whether an event that cannot be processed ends the run."""
        return self._rule.then == "fail"

    def pauses_s(self) -> Iterator[float]:
        """How long to wait before each further try."""
        for retry in range(self._rule.retries):
            yield min(FIRST_PAUSE_S * 2**retry, LONGEST_PAUSE_S)

    def reject(self, cause: Cause, error: Exception | str, what: str = "") -> None:
        """Leave an event out as the rule says; it has not been counted yet. `what` says what of it failed."""
        event_id, born, event = cause
        reason = f"{what}{error if isinstance(error, str) else described(error)}"
        if self.ends_run:
            self.fail(reason, event_id, event, error if isinstance(error, Exception) else None)
        counted = "error"
        if self._rule.then == "dead_letter":
            counted = "dead_letter"
            line = "" if isinstance(error, str) else line_of(error.__traceback__)
            letter = {"operator": self._name, "replica": self._replica, "id": event_id, "event": plain(event)}
            self._send((f"{event_id}.{self._name}", born, letter | {"error": reason, "line": line}))
        dropped = self._counters.dropped
        dropped[counted] = dropped.get(counted, 0) + 1
        self._untold, self._last = self._untold + 1, f"{reason}; on event {event_id}"
        self.tell()

    def fail(self, reason: str, event_id: str, event: Any, error: Exception | None) -> NoReturn:
        """End the run, and say why."""
        raise EngineError(one_line(f"{self._label}: {reason}; on event {event_id}: {shortened(event)}")) from error

    def tell(self) -> None:
        """Log what was left out since the last time, once a second at most."""
        now_s = time.monotonic()
        if self._untold and now_s - self._told_s >= LOG_EVERY_S:
            untold, self._untold, self._told_s = self._untold, 0, now_s
            done = "dropped" if self._rule.then == "drop" else "sent to the dead letters"
            log.warning("%s: %d %s, the last one: %s", self._label, untold, done, self._last)

    def decode(self, bundle: bytes, count: int, kind: Any) -> Events[Any]:
        """The first `count` events of a bundle that cannot be decoded as a whole, without those that are to blame."""
        try:
            events = _raw(bundle)
        except msgspec.MsgspecError as error:
            raise EngineError(f"{self._label}: a bundle is broken: {error}") from error
        keep_rows(events, range(count))
        decode, decoded = msgspec.msgpack.Decoder(kind).decode, {}

        def check(raw: msgspec.Raw) -> None:
            try:
                decoded[id(raw)] = decode(raw)
            except Exception as error:
                raise InputError(f"it is not {getattr(kind, '__name__', 'an event')}: {error}") from error

        self.sift(events, check, _plainly)
        events.events = [decoded[id(raw)] for raw in events.events]
        return events

    def sift(
        self, events: Events[Any], check: Callable[[Any], object], shown: Callable[[Any], Any] = lambda event: event
    ) -> int:
        """Reject the events for which `check` raises; how many there were."""
        good = []
        for index, event in enumerate(events.events):
            try:
                check(event)
                good.append(index)
            except Exception as error:
                self.reject((events.ids[index], events.born[index], shown(event)), error)
        bad = len(events.events) - len(good)
        keep_rows(events, good)
        return bad


def keep_rows(events: Events[Any], rows: range | list[int]) -> None:
    """Leave all but these rows out; a request that came with one of the others goes with the next."""
    if len(rows) == len(events.ids):
        return
    for name in ("ids", "born", "events"):
        column = getattr(events, name)
        setattr(events, name, [column[row] for row in rows])
    if events.keys is not None:
        hashes = np.frombuffer(events.keys.hashes, HASH)[rows]
        places = np.searchsorted(rows, [request.event for request in events.keys.requests])
        moved = [
            one._replace(event=min(int(at), len(rows) - 1))
            for one, at in zip(events.keys.requests, places, strict=True)
            if len(rows)
        ]
        events.keys = msgspec.structs.replace(events.keys, hashes=hashes.tobytes(), requests=moved)


def described(error: Exception) -> str:
    """Kind and message, in one line that can be encoded.

    >>> described(ValueError("no\\nway"))
    'ValueError: no way'
    """
    kind = "" if isinstance(error, PenstockError) else f"{type(error).__name__}: "
    return one_line(f"{kind}{error}")


def one_line(text: str) -> str:
    """The text without line breaks, and without what is no Unicode."""
    return " ".join(text.splitlines()).encode(errors="backslashreplace").decode()


def shortened(event: Any) -> str:
    """What Python shows of an event, if that is short, or the beginning of it."""
    shown = repr(event)
    return shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}…"


def line_of(traceback: TracebackType | None) -> str:
    """The last line of the user's own code that a traceback has, or of a library's: file, line, function and code."""
    frames = []
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(_PENSTOCK):
            frames.append((traceback.tb_frame.f_code, traceback.tb_lineno))
        traceback = traceback.tb_next
    if not frames:
        return ""
    own = [frame for frame in frames if not frame[0].co_filename.startswith(_LIBRARIES)]
    code, line = (own or frames)[-1]
    text = linecache.getline(code.co_filename, line).strip()
    return one_line(f"{code.co_filename}:{line}, in {code.co_name}{text and ': '}{text}")


def plain(event: Any) -> Any:
    """The event as JSON could have it, or what Python shows of it where it cannot.

    >>> plain({"raw": b"caf\\xc3\\xa9", "png": b"\\x89P", "at": {1, 2}}), plain(2**70), plain(object)
    ({'raw': 'café', 'png': 'iVA=', 'at': [1, 2]}, '1180591620717411303424', "<class 'object'>")
    """
    try:
        value = _texts(msgspec.to_builtins(event, builtin_types=(bytes, bytearray, memoryview), str_keys=True))
        msgspec.msgpack.encode(value)
    except Exception:
        return one_line(repr(event))
    return value


def _texts(value: Any) -> Any:
    """The same with text for bytes: as it reads in UTF-8, or in base64."""
    if isinstance(value, dict):
        return {key: _texts(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_texts(one) for one in value]
    if not isinstance(value, bytes | bytearray | memoryview):
        return value
    try:
        return bytes(value).decode()
    except UnicodeDecodeError:
        return base64.b64encode(value).decode()


def _plainly(raw: msgspec.Raw) -> Any:
    """An event that is not of its type, as it came."""
    try:
        return msgspec.msgpack.decode(raw)
    except msgspec.MsgspecError:
        return bytes(raw)
