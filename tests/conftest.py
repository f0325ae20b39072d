"""What all tests have: services where they ask for them; at the end, what took how long and what was skipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

from .services import broker as rabbitmq
from .services import browser as chromium
from .services import database as postgresql
from .services import hdfs as hadoop
from .services import kafka as apache
from .services import s3

# A busy machine makes single examples slow: no time limit for them.
settings.register_profile("penstock", deadline=None)
settings.load_profile("penstock")


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[rabbitmq.Broker]:
    """A RabbitMQ."""
    if rabbitmq.server() is None:
        pytest.skip("RabbitMQ is not installed")
    one = rabbitmq.Broker(tmp_path_factory.mktemp("rabbitmq"))
    try:
        one.start()
        yield one
    finally:
        one.kill()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[apache.Kafka]:
    """A Kafka, for topics of one's own; who kills it starts it again."""
    if apache.java() is None:
        pytest.skip("Kafka is not installed")
    one = apache.Kafka(tmp_path_factory.mktemp("kafka"))
    try:
        one.start()
        yield one
    finally:
        one.kill()


@pytest.fixture(scope="session")
def database() -> Iterator[postgresql.Database]:
    """A PostgreSQL."""
    if postgresql.server() is None:
        pytest.skip("PostgreSQL is not installed")
    one = postgresql.Database()
    try:
        one.start()
        yield one
    finally:
        one.stop()


@pytest.fixture(scope="session")
def object_store() -> Iterator[s3.ObjectStore]:
    """An S3; its login is in the environment."""
    if s3.python() is None:
        pytest.skip("moto is not installed")
    one = s3.ObjectStore()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in s3.LOGIN.items():
            patch.setenv(name, value)
        try:
            one.start()
            yield one
        finally:
            one.stop()


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hadoop.Hdfs]:
    """An HDFS; who kills it starts it again."""
    if hadoop.java() is None:
        pytest.skip("Hadoop is not installed")
    if find_spec("hdfs_native") is None:
        pytest.skip("hdfs-native is not installed")
    one = hadoop.Hdfs(tmp_path_factory.mktemp("hdfs"))
    try:
        one.start()
        yield one
    finally:
        one.kill()


@pytest.fixture
def browser(tmp_path: Path) -> chromium.Browser:
    """A Chromium."""
    if chromium.program() is None:
        pytest.skip("Chromium is not installed")
    return chromium.Browser(tmp_path)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Each folder's share of the time, and one line on what was skipped."""
    reports = [one for several in terminalreporter.stats.values() for one in several if hasattr(one, "duration")]
    _tell_times(terminalreporter, reports)
    reasons = Counter(one.longrepr[2].removeprefix("Skipped: ") for one in terminalreporter.stats.get("skipped", []))
    if reasons:
        told = ", ".join(f"{count} as {reason}" for reason, count in reasons.most_common())
        terminalreporter.write_line(f"skipped: {told}", yellow=True)


def _tell_times(reporter: pytest.TerminalReporter, reports: list[pytest.TestReport]) -> None:
    times: Counter[str] = Counter()
    for one in reports:
        times[_folder(one.nodeid)] += one.duration  # type: ignore[assignment]
    total = sum(times.values())
    if len(times) < 2:
        return
    reporter.write_line(f"{total:.0f} s in tests, by folder:")
    for folder, time_s in times.most_common():
        if time_s >= 0.01 * total:
            reporter.write_line(f"{time_s:8.1f} s {time_s / total:4.0%}  {folder}")


def _folder(nodeid: str) -> str:
    """`src`, `tests/spark`, `tests/unit/engine`."""
    parts = nodeid.partition("::")[0].split("/")[:-1]
    return "/".join(parts[: 3 if parts[:2] == ["tests", "unit"] else 2 if parts[0] == "tests" else 1])
