"""A Kafka of the tests' own: one broker that is its own controller; it can be killed and started again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from . import free_port
from .server import START_S, Server

JARS = Path(__file__).parents[2] / ".kafka" / "jars"  # scripts/kafka.sh puts them there
QUICK_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")  # Java's; for benchmarks, none
MECHANISMS = ("SCRAM-SHA-256", "PLAIN")
USERS = {"reader": "read-secret", "limited": "limit-secret", "stranger": "strange-secret"}  # the first may do all

# Small, quick to start, and one copy of everything. Who comes by the plain listener may do all; by the other, with TLS,
# users may do what `allow` says. A broker that is started again waits until its old session has ended, so that this one
# is short. Records of 1970 are kept.
SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{sasl_port},CONTROLLER://127.0.0.1:{controller}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT
ssl.keystore.type=PEM
ssl.keystore.location={folder}/broker.pem
sasl.enabled.mechanisms={mechanisms}
listener.name.sasl_ssl.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required {users};
listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config=\
org.apache.kafka.common.security.scram.ScramLoginModule required;
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:reader
log.dirs={folder}/data
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=5000
log.retention.ms=-1
log.cleaner.dedupe.buffer.size=8388608
num.network.threads=2
num.io.threads=4
"""


def runtime() -> str | None:
    """The Java that Spark would start, too."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(f"{home}/bin/java" if home else "java")


def java() -> str | None:
    """The program that runs it, if it, Kafka and what makes a certificate are there."""
    is_there = JARS.with_name("pom.xml").is_file() and shutil.which("openssl")
    return runtime() if is_there else None


def certificate(folder: Path, name: str) -> Path:
    """A file with a certificate for 127.0.0.1 that signs itself, and is so its own authority; beside it, its key."""
    cert, key = folder / f"{name}.crt", folder / f"{name}.key"
    made = ["-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
    files = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(["openssl", "req", "-x509", *made, *files], check=True, capture_output=True)
    return cert


class Kafka(Server):
    """Starts, is killed, and starts again with what it has on disk; `address` takes everybody, `sasl_address` users."""

    name = "Kafka"

    def __init__(self, folder: Path, flags: Sequence[str] = QUICK_START) -> None:
        super().__init__(folder)
        self.address = f"127.0.0.1:{free_port()}"
        self.sasl_address = f"127.0.0.1:{free_port()}"
        self.ca = folder / "broker.crt"
        self._flags = flags

    def start(self) -> None:
        """Start it, and wait until it answers."""
        if not (self._folder / "data").exists():
            self._prepare()
        self.launch([*self._java("kafka.Kafka"), "server.properties"])
        self.await_answer()

    def stop(self) -> None:
        """End it in order."""
        self.end(signal.SIGTERM)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """It answers nobody meanwhile, and nobody is told."""
        (process,) = self._processes
        os.killpg(process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            with suppress(ProcessLookupError):  # another fault has ended it meanwhile
                os.killpg(process.pid, signal.SIGCONT)

    @cached_property
    def admin(self) -> AdminClient:
        """A client that may do all."""
        return AdminClient({"bootstrap.servers": self.address, "log_level": 0})

    def create(self, topic: str, partitions: int = 1, **settings: str) -> str:
        """Make a topic, and wait until it is there; `retention_ms` is the setting `retention.ms`."""
        config = {name.replace("_", "."): value for name, value in settings.items()}
        new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=config)
        self.admin.create_topics([new])[topic].result(START_S)
        while topic not in self.admin.list_topics(timeout=START_S).topics:
            time.sleep(0.05)
        return topic

    def delete(self, topic: str) -> None:
        """Remove a topic, and wait until it is gone."""
        self.admin.delete_topics([topic])[topic].result(START_S)
        while topic in self.admin.list_topics(timeout=START_S).topics:
            time.sleep(0.05)

    def login(self, user: str, password: str, mechanism: str = MECHANISMS[0]) -> dict[str, str]:
        """A client's settings for `sasl_address`."""
        ours = {"security.protocol": "SASL_SSL", "ssl.ca.location": str(self.ca), "sasl.mechanisms": mechanism}
        return ours | {"sasl.username": user, "sasl.password": password}

    def allow(self, user: str, name: str, operation: AclOperation, kind: ResourceType = ResourceType.TOPIC) -> None:
        """Let a user do this with a topic, or with what else has a name that begins so; wait until it holds."""
        pattern = ResourcePatternType.LITERAL if kind == ResourceType.TOPIC else ResourcePatternType.PREFIXED
        names = (kind, name, pattern)
        rule = AclBinding(*names, f"User:{user}", "*", operation, AclPermissionType.ALLOW)
        self.admin.create_acls([rule])[rule].result(START_S)
        asked = AclBindingFilter(*names, f"User:{user}", "*", operation, AclPermissionType.ALLOW)
        while not self.admin.describe_acls(asked).result(START_S):
            time.sleep(0.05)

    def _prepare(self) -> None:
        controller = free_port()
        users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
        settings = SETTINGS.format(
            port=self.address.partition(":")[2],
            sasl_port=self.sasl_address.partition(":")[2],
            controller=controller,
            mechanisms=",".join(MECHANISMS),
            users=users,
            folder=self._folder,
        )
        (self._folder / "server.properties").write_text(settings)
        pair = certificate(self._folder, "broker")
        (self._folder / "broker.pem").write_text(pair.with_suffix(".key").read_text() + pair.read_text())
        tool = [*self._java("kafka.tools.StorageTool"), "format", "-t", "cGVuc3RvY2stdGVzdHMtMQ"]
        for name, password in USERS.items():
            tool += ["--add-scram", f"SCRAM-SHA-256=[name={name},password={password}]"]
        made = subprocess.run([*tool, "-c", "server.properties"], cwd=self._folder, capture_output=True, text=True)
        if made.returncode:
            raise RuntimeError(f"Kafka could not make its folder: {made.stdout}{made.stderr}")

    def _java(self, main: str) -> list[str]:
        log = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        return [str(java()), "-Xmx512m", *self._flags, log, "-cp", f"{JARS}/*", main]

    def answers(self) -> bool:
        """Whether it also knows about groups, which takes it a second longer than to listen."""
        one = Consumer({"bootstrap.servers": self.address, "group.id": "is-it-there", "log_level": 0})
        try:
            return bool(one.committed([TopicPartition("none", 0)], timeout=2.0))
        except KafkaException:
            return False
        finally:
            one.close()
