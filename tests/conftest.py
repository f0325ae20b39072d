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


def need(name: str, found: object) -> None:
    """Skip the test that asks for what is not installed."""
    if found is None:
        pytest.skip(f"{name} is not installed")


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[rabbitmq.Broker]:
    """A RabbitMQ."""
    need("RabbitMQ", rabbitmq.server())
    with rabbitmq.Broker(tmp_path_factory.mktemp("rabbitmq")) as one:
        yield one


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[apache.Kafka]:
    """A Kafka, for topics of one's own; who kills it starts it again."""
    need("Kafka", apache.java())
    with apache.Kafka(tmp_path_factory.mktemp("kafka")) as one:
        yield one


@pytest.fixture(scope="session")
def database() -> Iterator[postgresql.Database]:
    """A PostgreSQL."""
    need("PostgreSQL", postgresql.server())
    with postgresql.Database() as one:
        yield one


@pytest.fixture(scope="session")
def object_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[s3.ObjectStore]:
    """An S3; its login is in the environment."""
    need("moto", s3.python())
    with pytest.MonkeyPatch.context() as patch, s3.ObjectStore(tmp_path_factory.mktemp("s3")) as one:
        for name, value in s3.LOGIN.items():
            patch.setenv(name, value)
        yield one


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hadoop.Hdfs]:
    """An HDFS; who kills it starts it again."""
    need("Hadoop", hadoop.java())
    need("hdfs-native", find_spec("hdfs_native"))
    with hadoop.Hdfs(tmp_path_factory.mktemp("hdfs")) as one:
        yield one


@pytest.fixture
def browser(tmp_path: Path) -> chromium.Browser:
    """A Chromium."""
    need("Chromium", chromium.program())
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
