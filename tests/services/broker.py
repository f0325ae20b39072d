"""A RabbitMQ of the tests' own, which can be killed and started again."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from ..waiting import LONG_S
from . import free_port

SERVERS = ("/usr/lib/rabbitmq/bin/rabbitmq-server", "rabbitmq-server")  # the first runs as whoever starts it
START_S = LONG_S


def server() -> str | None:
    """The program, if it is installed."""
    return next((found for name in SERVERS if (found := shutil.which(name))), None)


class Broker:
    """Starts, is killed, and starts again with what it has on disk."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}/"
        self._folder = folder
        self._names = free_port()
        self._processes: list[subprocess.Popen[bytes]] = []
        (folder / "plugins").write_text("[].\n")

    def start(self) -> None:
        """Start Erlang's name server and the broker, and wait until it takes connections."""
        self._run(["epmd", "-port", str(self._names), "-address", "127.0.0.1"])
        self._run([str(server())])
        deadline_s = time.monotonic() + START_S
        while not self._answers():
            if time.monotonic() > deadline_s or self._processes[-1].poll() is not None:
                self.kill()
                raise RuntimeError(f"rabbitmq-server did not start: {(self._folder / 'out').read_text()[-2000:]}")
            time.sleep(0.1)

    def kill(self) -> None:
        """End it at once, as a crash would."""
        for process in reversed(self._processes):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._processes.clear()

    def _run(self, command: list[str]) -> None:
        with (self._folder / "out").open("ab") as out:
            process = subprocess.Popen(
                command,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=self._folder,
                start_new_session=True,
            )
        self._processes.append(process)

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self._folder),  # Erlang's cookie
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(self._names),
            "RABBITMQ_NODENAME": "penstock@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(self._folder / "data"),
            "RABBITMQ_LOG_BASE": str(self._folder / "log"),
            "RABBITMQ_PID_FILE": str(self._folder / "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self._folder / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(self._folder / "none"),
            "RABBITMQ_CONF_ENV_FILE": str(self._folder / "none"),
        }

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1.0) as one:
                one.sendall(b"AMQP\x00\x00\x09\x01")
                return bool(one.recv(1))
        except OSError:
            return False
