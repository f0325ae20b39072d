"""The agent: one in each Python worker process, between its replica and the driver.

Counters, and what was done for checkpoints, go up every `report_every_s` and when the driver polls; every fourth
time while nothing changes, and after a while the agent rests in between until it is woken. What has changed comes down
at once: the routing, how used replicas are, how far the run is. Where the grouping is online shuffle, mail goes both
ways with the counters. If the channel breaks, the replica goes on with what it has heard, and the agent tries again:
counters are cumulative, and who connects is told everything anew.
"""

from __future__ import annotations

import contextlib
import hmac
import logging
import os
import secrets
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from penstock.engine.direct.greeting import Addressee
from penstock.engine.direct.receiver import Listener
from penstock.engine.direct.sender import Lines
from penstock.engine.plan.program import DriverAddress, Program
from penstock.engine.protocol.messages import (
    LENGTH,
    MAX_FRAME_BYTES,
    Address,
    Answer,
    AtWork,
    Downward,
    Hello,
    OnlineNews,
    Places,
    Poll,
    Proof,
    Question,
    Reports,
    Restore,
    RestoreQuery,
    Routing,
    Start,
    StartQuery,
    Tables,
    TablesQuery,
    Upward,
    Utilisations,
    downward,
    frame,
    proof,
)
from penstock.engine.protocol.progress import Call, Progress, not_heard
from penstock.engine.protocol.tls import connect, received, shake_hands
from penstock.engine.pull.post import Post
from penstock.engine.worker.lifecycle import close_all
from penstock.engine.worker.role import Role
from penstock.infra.worker import WORKER_NAME, executor_here
from penstock.state.handover import Table
from penstock.topology import ReplicaId

log = logging.getLogger(__name__)

RETRY_S = 0.5
CONNECT_S = 5.0
READ_BYTES = 1 << 16
ANSWER_TIMEOUT_S = 30.0
KEPT_ROLES = 64
QUIET_REPORTS = 4  # of so many one is sent while nothing changes,
RESTS_AFTER = 20  # and after so many the others are not even thought of

A = TypeVar("A", bound=Answer)

_agents: dict[str, Agent] = {}
_lock = threading.Lock()


def agent_for(program: Program) -> Agent:
    """This process's agent for a run; there is one until the run closes, or another driver carries it on."""
    with _lock:
        agent = _agents.get(program.run)
        if agent is None or agent.pid != os.getpid() or agent.driver != program.driver:
            if agent is not None:
                agent.retire()
            agent = _agents[program.run] = Agent(program.run, program.driver, Routing(0, dict(program.routing)))
        return agent


class Agent:
    """A background thread that keeps one connection to the driver.

    What it has heard last is in its attributes, each replaced as a whole: replicas read them without a lock.
    """

    def __init__(self, run: str, driver: DriverAddress, routing: Routing) -> None:
        self.pid = os.getpid()
        self._host = os.environ.get(WORKER_NAME) or executor_here() or socket.gethostname()
        self.routing = routing
        self.used = Utilisations()
        self.places = Places()
        self.progress = not_heard()
        self.resting = False  # nothing has happened for long: who has something to report wakes it
        self._poll = 0
        self._run = run
        self.driver = driver
        self._retired = False
        self._roles: deque[Role] = deque(maxlen=KEPT_ROLES)
        self._answer: Answer | None = None
        self._heard = threading.Condition()
        self._waiting: Question | None = None
        self._me: AtWork | None = None  # of a standby, which has nothing to report
        self._first_routing = threading.Event()
        self._wake, self._woken = socket.socketpair()
        self._wake.setblocking(False)
        self._woken.setblocking(False)
        self._sending = threading.Lock()
        self._connection: socket.socket | None = None  # to the driver, while they talk
        self._inbound = bytearray()
        self._here = "127.0.0.1"  # this machine, as the driver sees it
        self._post: Post | None = None
        threading.Thread(target=self._serve, name="penstock-agent", daemon=True).start()

    def join(self, role: Role) -> None:
        """Report this role from now on."""
        self._roles.append(role)
        self.wake()

    def wake(self) -> None:
        """Report soon."""
        with contextlib.suppress(OSError):  # it has been woken often enough, or the run is over
            self._wake.send(b"w")

    def tell(self, at_work: AtWork) -> None:
        """Say it before anything else is done, as this process may end; not at all while the driver is away."""
        with self._sending, contextlib.suppress(OSError):
            if self._connection is not None:
                _send(self._connection, at_work)

    def introduce(self, me: AtWork) -> None:
        """Have the driver know whose process this is before there is anything to report, also when it comes back."""
        self._me = me
        self.tell(me)

    def post(self) -> Post:
        """By which replicas tell each other of room; made when it is first needed, once the driver has been heard."""
        with self._heard:
            if self._post is None:
                self._post = Post(self._here, self.driver.secret, self.driver.ports)
                self.wake()
            return self._post

    def retire(self) -> None:
        """Another driver carries the run on: talk to this one no more."""
        self._retired = True
        if self.pid == os.getpid():
            self.wake()
            self.wake_standby()

    def wait_for_call(self, generation: int, ended: threading.Event) -> Call | None:
        """Wait until the standby of that generation is called; None if the run ends before, or this is set."""

        def over() -> bool:
            return self._is_over or ended.is_set()

        with self._heard:
            self._heard.wait_for(lambda: over() or self.progress.called.generation == generation)
            return None if over() else self.progress.called

    def wake_standby(self) -> None:
        """It may have been called, or never will be."""
        with self._heard:
            self._heard.notify_all()

    @property
    def _is_over(self) -> bool:
        """There is nobody to come back to."""
        return self.progress.closing or self._retired

    def wait_for_routing(self, timeout_s: float) -> bool:
        """Wait until the driver has been heard at least once."""
        return self._first_routing.wait(timeout_s)

    def ask_start(self, question: StartQuery) -> Start:
        """Where a source's slot starts."""
        return self._ask(question, Start)

    def ask_tables(self, question: TablesQuery) -> dict[str, Table]:
        """Who owns which key groups, by operator."""
        return self._ask(question, Tables).tables

    def ask_restore(self, question: RestoreQuery) -> Restore:
        """Of which segments the state of an operator is."""
        return self._ask(question, Restore)

    def listener(self, program: Program, name: str, replica: int) -> Listener:
        """Where others find a replica of this process, in this attempt."""
        if not self.wait_for_routing(ANSWER_TIMEOUT_S):
            raise TimeoutError(f"the driver was not heard within {ANSWER_TIMEOUT_S:g} s")
        me = Addressee(program.run, program.generation, name, replica)
        return Listener(self._here, self.driver, me)

    def lines(self, program: Program, over: Callable[[], bool]) -> Lines:
        """Connections to whomever a replica of this process sends to."""
        return Lines(program, lambda: self.listening(program.generation), over)

    def listening(self, generation: int) -> dict[ReplicaId, Address]:
        """Where the replicas of an attempt can be reached; nothing before the driver knows it of all of them."""
        return {(one.operator, one.replica): one.address for one in self.places.generations.get(generation, ())}

    def _ask(self, question: Question, kind: type[A]) -> A:
        """The driver's answer; asked again after every broken connection until the time is over."""
        with self._heard:
            self._answer, self._waiting = None, question
            self.wake()
            self._heard.wait_for(lambda: isinstance(self._answer, kind), ANSWER_TIMEOUT_S)
            self._waiting = None
            answer: Any = self._answer
            if not isinstance(answer, kind):
                raise TimeoutError(f"the driver did not answer within {ANSWER_TIMEOUT_S:g} s: {question}")
            return answer

    def _serve(self) -> None:
        while not self._is_over:
            try:
                address = self.driver.host, self.driver.port
                with connect(address, CONNECT_S, self.driver.credential) as connection:
                    shake_hands(connection)
                    self._here = connection.getsockname()[0]
                    self._shake_hands(connection)
                    self._connection = connection
                    self._talk(connection)
            except (OSError, EOFError, ValueError):  # ValueError: what came is not a message
                time.sleep(RETRY_S)
            except Exception:  # nor may one that cannot be end this thread: the replica would never be heard again
                log.exception("control channel: what the driver said cannot be followed; connecting anew")
                time.sleep(RETRY_S)
            finally:
                self._connection = None
        with _lock:
            if _agents.get(self._run) is self:
                del _agents[self._run]
        self._wake.close()
        self._woken.close()
        if self._post is not None:
            self._post.close()

    def _shake_hands(self, connection: socket.socket) -> None:
        self._inbound.clear()
        challenge = secrets.token_bytes(32)
        _send(connection, Hello(self._run, challenge))
        hello = self._receive(connection)
        if not isinstance(hello, Hello):
            raise OSError("the driver did not say hello")
        _send(connection, Proof(proof(self.driver.secret, b"replica", hello.challenge)))
        answer = self._receive(connection)
        expected = proof(self.driver.secret, b"driver", challenge)
        if not isinstance(answer, Proof) or not hmac.compare_digest(answer.answer, expected):
            raise OSError("the driver does not hold the run's secret")
        for role in list(self._roles):
            role.forget_sent()

    def _talk(self, connection: socket.socket) -> None:
        asked: Question | None = None
        told, quiet = -1, 0
        self._take_all()  # the routing may have come along with the driver's proof
        if self._me is not None:
            self._say(connection, self._me)
        while not self._retired:
            waiting = self._waiting
            if waiting is not None and waiting is not asked:
                self._say(connection, waiting)
            asked = waiting
            self.resting = quiet >= RESTS_AFTER  # from now on it is woken by whatever it does not see below
            poll = self._poll  # read before the counters, which are then no older than the poll
            roles = list(self._roles)
            reports = [role.report for role in roles if role.changed()]
            online = [mail for role in roles if (mail := role.mail.collect(role.report)) is not None]
            state = [news for role in roles for news in role.state_news()]
            done = [news for role in roles for news in role.done_news()]
            quiet = 0 if reports or online or state or done else quiet + 1
            self.resting = self.resting and quiet > 0
            if poll != told or self.resting or quiet % QUIET_REPORTS == 0:
                self._say(connection, Reports(self._host, self.pid, poll, reports, online, state, done))
                told = poll
            if self._poll == poll:
                self._listen(connection)

    def _say(self, connection: socket.socket, message: Upward) -> None:
        with self._sending:
            _send(connection, message)

    def _listen(self, connection: socket.socket) -> None:
        """Take what the driver says until the next report is due, something is asked, or a poll comes in."""
        deadline = time.monotonic() + self.driver.report_every_s * (QUIET_REPORTS if self.resting else 1)
        poll = self._poll
        while (left := deadline - time.monotonic()) > 0:
            posts = [self._post.socket] if self._post is not None else []
            readable, _, _ = select.select([connection, self._woken, *posts], [], [], left)
            if posts and posts[0] in readable:
                self._deliver()
            if connection in readable:
                self._read(connection)
                self._take_all()
            if self._woken in readable:
                self._woken.recv(4096)
                return
            if self._poll != poll:
                return

    def _deliver(self) -> None:
        """Hand notes of room to the replicas that they are for."""
        assert self._post is not None
        for note in self._post.received():
            for role in list(self._roles):
                if role.report.generation == note.generation and (role.report.operator, role.report.replica) == note.to:
                    role.on_room(note)

    def _take(self, message: Downward) -> None:
        if isinstance(message, Poll):
            self._poll = max(self._poll, message.number)
        elif isinstance(message, Routing | Utilisations | Places | Progress):
            self._follow(message)
        elif isinstance(message, Answer):
            with self._heard:
                self._answer = message
                self._heard.notify_all()
        elif isinstance(message, OnlineNews):
            for role in list(self._roles):
                if role.is_for(message):
                    role.mail.deliver(message)

    def _follow(self, message: Routing | Utilisations | Places | Progress) -> None:
        """Replace what was known, unless it is newer."""
        if isinstance(message, Routing):
            if message.version >= self.routing.version:
                before, self.routing = self.routing, message
                earlier = {name: one.table for name, one in before.operators.items()}
                if any(one.table not in (None, earlier.get(name)) for name, one in message.operators.items()):
                    self._wake_roles()
            self._first_routing.set()
        elif isinstance(message, Utilisations):
            self.used = message if message.version >= self.used.version else self.used
        elif isinstance(message, Places):
            self.places = message if message.version >= self.places.version else self.places
        elif message.version >= self.progress.version:
            self.progress = message
            if message.closing:
                close_all()
            self._wake_roles()
            self.wake_standby()

    def _wake_roles(self) -> None:
        """Owners of key groups, phases or checkpoints have changed: whoever waits for events is to look."""
        for role in list(self._roles):
            if role.on_news is not None:
                role.on_news()

    def _take_all(self) -> None:
        while (message := self._next_message()) is not None:
            self._take(message)

    def _receive(self, connection: socket.socket) -> Any:
        while (message := self._next_message()) is None:
            self._take_in(connection.recv(READ_BYTES))
        return message

    def _read(self, connection: socket.socket) -> None:
        with self._sending:  # a connection under TLS is not for two threads at once
            data = received(connection, READ_BYTES)
        if data is not None:
            self._take_in(data)

    def _take_in(self, data: bytes) -> None:
        if not data:
            raise EOFError("the driver closed the channel")
        self._inbound += data

    def _next_message(self) -> Downward | None:
        if len(self._inbound) < LENGTH.size:
            return None
        (length,) = LENGTH.unpack_from(self._inbound)
        if length > MAX_FRAME_BYTES:
            raise OSError(f"a frame of {length} bytes is too long")
        if len(self._inbound) < LENGTH.size + length:
            return None
        payload = bytes(self._inbound[LENGTH.size : LENGTH.size + length])
        del self._inbound[: LENGTH.size + length]
        message: Downward = downward.decode(payload)
        return message


def _send(connection: socket.socket, message: Upward) -> None:
    connection.sendall(frame(message))
