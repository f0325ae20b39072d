"""An S3 of the tests' own: moto's server, which keeps objects in memory and forgets them when it ends."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path

from ..waiting import LONG_S
from . import free_port

PYTHON = Path(__file__).parents[2] / ".s3" / "bin" / "python"  # an environment of its own: it brings thirty packages
START_S = LONG_S
LOGIN = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "tests", "AWS_EC2_METADATA_DISABLED": "true"}


def python() -> Path | None:
    """The Python that has it, if it is installed."""
    return PYTHON if (PYTHON.parents[1] / "ready").exists() else None


class ObjectStore:
    """Buckets on loopback."""

    def __init__(self) -> None:
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        code = "from moto.server import main; main()"
        command = [str(PYTHON), "-c", code, "-H", "127.0.0.1", "-p", str(self.port)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline_s = time.monotonic() + START_S
        while not self._answers():
            if time.monotonic() > deadline_s or self._process.poll() is not None:
                self.stop()
                raise RuntimeError("moto's server did not start")
            time.sleep(0.1)

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def uri(self, bucket: str, folder: str) -> str:
        """Of a folder in a bucket, which is made if it is not there; a login is in the environment."""
        from pyarrow import fs

        about = f"endpoint_override=127.0.0.1:{self.port}&scheme=http&region=us-east-1"
        system, path = fs.FileSystem.from_uri(f"s3://{bucket}?{about}&allow_bucket_creation=true")
        system.create_dir(path)
        return f"s3://{bucket}/{folder}?{about}"

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1.0).close()
        except OSError:
            return False
        return True
