"""A RabbitMQ of the tests' own, which can be killed and started again."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

from . import free_port
from .server import Server

SERVERS = ("/usr/lib/rabbitmq/bin/rabbitmq-server", "rabbitmq-server")  # the first runs as whoever starts it


def server() -> str | None:
    """The program, if it is installed."""
    return next((found for name in SERVERS if (found := shutil.which(name))), None)


class Broker(Server):
    """Starts, is killed, and starts again with what it has on disk."""

    name = "rabbitmq-server"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.port = free_port()
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}/"
        self._names = free_port()
        (folder / "plugins").write_text("[].\n")

    def start(self) -> None:
        """Start Erlang's name server and the broker, and wait until it takes connections."""
        self.launch(["epmd", "-port", str(self._names), "-address", "127.0.0.1"], env=self._environment())
        self.launch([str(server())], env=self._environment())
        self.await_answer()

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

    def answers(self) -> bool:
        """Whether it takes connections."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1.0) as one:
                one.sendall(b"AMQP\x00\x00\x09\x01")
                return bool(one.recv(1))
        except OSError:
            return False
