"""An S3 of the tests' own: moto's server, which keeps objects in memory and forgets them when it ends."""

from __future__ import annotations

import socket
from pathlib import Path

from . import free_port
from .server import Server

PYTHON = Path(__file__).parents[2] / ".s3" / "bin" / "python"  # an environment of its own: it brings thirty packages
LOGIN = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "tests", "AWS_EC2_METADATA_DISABLED": "true"}


def python() -> Path | None:
    """The Python that has it, if it is installed."""
    return PYTHON if (PYTHON.parents[1] / "ready").exists() else None


class ObjectStore(Server):
    """Buckets on loopback."""

    name = "moto's server"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.port = free_port()

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        code = "from moto.server import main; main()"
        self.launch([str(PYTHON), "-c", code, "-H", "127.0.0.1", "-p", str(self.port)])
        self.await_answer()

    def uri(self, bucket: str, folder: str) -> str:
        """Of a folder in a bucket, which is made if it is not there; a login is in the environment."""
        from pyarrow import fs

        about = f"endpoint_override=127.0.0.1:{self.port}&scheme=http&region=us-east-1"
        system, path = fs.FileSystem.from_uri(f"s3://{bucket}?{about}&allow_bucket_creation=true")
        system.create_dir(path)
        return f"s3://{bucket}/{folder}?{about}"

    def answers(self) -> bool:
        """Whether it takes connections."""
        try:
            socket.create_connection(("127.0.0.1", self.port), 1.0).close()
        except OSError:
            return False
        return True
