"""A PostgreSQL of the tests' own, which keeps nothing beyond them."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg

from ..waiting import LONG_S
from . import free_port

START_S = LONG_S
ACCOUNT = "postgres"  # the server refuses to run as root


def server() -> Path | None:
    """The folder with its programs, if it is installed: on the PATH, or where Debian keeps it; the newest."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    return max((path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")), default=None)


class Database:
    """Started in a new folder; `url` is that of an empty database."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"postgresql+psycopg://penstock@127.0.0.1:{self.port}/postgres"
        self._folder = Path(tempfile.mkdtemp(prefix="penstock-postgresql-"))  # one that its account can reach
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Make the database, start the server and wait until it takes connections."""
        programs, data = server(), str(self._folder / "data")
        if programs is None:
            raise RuntimeError("PostgreSQL is not installed")
        if os.getuid() == 0:
            shutil.chown(self._folder, ACCOUNT)
        made = [str(programs / "initdb"), "-D", data, "-U", "penstock", "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run(made, check=True, capture_output=True, **self._surroundings())
        self.resume()

    def resume(self) -> None:
        """Start the server on what is there, and wait until it takes connections."""
        served = [str((server() or Path()) / "postgres"), "-D", str(self._folder / "data"), "-h", "127.0.0.1"]
        served += ["-p", str(self.port), "-c", "fsync=off", "-c", "unix_socket_directories="]
        with (self._folder / "out").open("ab") as out:
            self._process = subprocess.Popen(served, stdout=out, stderr=out, **self._surroundings())
        deadline_s = time.monotonic() + START_S
        while not self._answers():
            if time.monotonic() > deadline_s or self._process.poll() is not None:
                raise RuntimeError(f"PostgreSQL did not start: {(self._folder / 'out').read_text()[-2000:]}")
            time.sleep(0.05)

    def halt(self) -> None:
        """End it with its connections; it can be resumed."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGINT)  # "fast": waits for nobody
            self._process.wait(START_S)

    @property
    def pid(self) -> int:
        """The server's process, of which the others are children."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """End it at once with all its processes, as a crash would; it can be resumed."""
        server = psutil.Process(self.pid)
        for one in (server, *server.children(recursive=True)):
            with suppress(psutil.Error):
                one.kill()
                one.wait(START_S)

    def stop(self) -> None:
        """End it, and remove its folder."""
        self.halt()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _surroundings(self) -> dict[str, Any]:
        account: dict[str, Any] = {}
        if os.getuid() == 0:
            found = pwd.getpwnam(ACCOUNT)
            account = {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
        return {"cwd": self._folder, "env": {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}, **account}

    def _answers(self) -> bool:
        with suppress(psycopg.OperationalError):
            psycopg.connect(self.url.replace("+psycopg", ""), connect_timeout=20).close()
            return True
        return False
