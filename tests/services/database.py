"""A PostgreSQL of the tests' own, which keeps nothing beyond them."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg

from . import free_port
from .server import START_S, Server

ACCOUNT = "postgres"  # the server refuses to run as root


def server() -> Path | None:
    """The folder with its programs, if it is installed: on the PATH, or where Debian keeps it; the newest."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    return max((path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")), default=None)


class Database(Server):
    """Started in a new folder, which goes with it; `url` is that of an empty database."""

    name = "PostgreSQL"

    def __init__(self) -> None:
        super().__init__(Path(tempfile.mkdtemp(prefix="penstock-postgresql-")))  # one that its account can reach
        self.port = free_port()
        self.url = f"postgresql+psycopg://penstock@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start the server on what is there, or on a new database, and wait until it takes connections."""
        programs, data = server(), self._folder / "data"
        if programs is None:
            raise RuntimeError("PostgreSQL is not installed")
        if not data.exists():
            self._prepare(programs, data)
        served = [str(programs / "postgres"), "-D", str(data), "-h", "127.0.0.1", "-p", str(self.port)]
        self.launch([*served, "-c", "fsync=off", "-c", "unix_socket_directories="], **self._surroundings())
        self.await_answer()

    def stop(self) -> None:
        """End it with its connections; it can be started again."""
        self.end(signal.SIGINT)  # "fast": waits for nobody

    @property
    def pid(self) -> int:
        """The server's process, of which the others are children."""
        return self._processes[-1].pid

    def kill(self) -> None:
        """End it at once with all its processes, which have sessions of their own, as a crash would."""
        children = [one for server in self._processes for one in _children(server.pid)]
        super().kill()
        for one in children:
            with suppress(psutil.Error):
                one.kill()
                one.wait(START_S)

    def remove(self) -> None:
        """End it, and remove its folder."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __exit__(self, *_: object) -> None:
        self.remove()

    def _prepare(self, programs: Path, data: Path) -> None:
        if os.getuid() == 0:
            shutil.chown(self._folder, ACCOUNT)
        made = [str(programs / "initdb"), "-D", str(data), "-U", "penstock", "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run(made, check=True, capture_output=True, **self._surroundings())

    def _surroundings(self) -> dict[str, Any]:
        account: dict[str, Any] = {}
        if os.getuid() == 0:
            found = pwd.getpwnam(ACCOUNT)
            account = {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
        return {"cwd": self._folder, "env": {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}, **account}

    def answers(self) -> bool:
        """Whether it takes connections."""
        with suppress(psycopg.OperationalError):
            psycopg.connect(self.url.replace("+psycopg", ""), connect_timeout=20).close()
            return True
        return False


def _children(pid: int) -> list[psutil.Process]:
    found: list[psutil.Process] = []
    with suppress(psutil.Error):  # it has ended
        found = psutil.Process(pid).children(recursive=True)
    return found
