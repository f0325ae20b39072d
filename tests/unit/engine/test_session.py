"""What is checked before Spark starts: Java, and a session that somebody else made."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.engine.session import (
    NEEDED,
    _standard_error_to,
    await_slots,
    check_java,
    check_masters,
    check_python,
    check_session,
    check_settings,
    interrupts_held,
    read_settings,
    submitted_master,
)
from penstock.errors import EngineError, InputError

LISTED = "spark.sql.streaming.realTimeMode.allowlistCheck"
WANTED = "Spark needs a Java runtime of version 17 or later"


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`java('17.0.2')`: a fake Java of that version is the only one on the PATH; its path."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()

    def installed(version: str) -> Path:
        script = tmp_path / "bin" / "java"
        script.write_text(
            f"#!{sys.executable}\nimport sys\nsys.stderr.write('openjdk version \"{version}\" 2021\\n')\n"
        )
        script.chmod(0o755)
        return script

    return installed


def test_no_java_on_the_path(java: Any) -> None:
    with pytest.raises(EngineError) as caught:
        check_java()
    told = f"{WANTED}; none is on the PATH (on Debian: apt-get install openjdk-17-jre-headless)"
    assert str(caught.value) == told


def test_a_java_home_without_java(java: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java("21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(EngineError) as caught:
        check_java()
    assert str(caught.value).startswith(f"{WANTED}; JAVA_HOME is '{tmp_path / 'gone'}' and holds none")


@pytest.mark.parametrize(("version", "said"), [("11.0.2", "11"), ("16", "16"), ("1.8.0_292", "8")])
def test_an_old_java_is_named_by_its_version(java: Any, version: str, said: str) -> None:
    """Java 8 calls itself 1.8 and used to be called version 1."""
    script = java(version)
    with pytest.raises(EngineError) as caught:
        check_java()
    assert str(caught.value) == f"{WANTED}; {script} is version {said}"


@pytest.mark.parametrize("version", ["17.0.2", "17", "21.0.1", "25-ea"])
def test_a_java_that_is_new_enough(java: Any, version: str) -> None:
    java(version)
    check_java()


def test_java_home_goes_before_the_path(java: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java("11.0.2")
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text(f"#!{sys.executable}\n")
    (home / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(home))
    check_java()


def session(settings: dict[str, str], master: str = "local[10]", cores: int = 4) -> Any:
    context = SimpleNamespace(master=master, defaultParallelism=cores)
    return SimpleNamespace(
        sparkContext=context, conf=SimpleNamespace(get=lambda key, default: settings.get(key, default))
    )


@pytest.mark.parametrize("master", ["local[10]", "local[10, 3]", "local[*]"])
def test_a_local_session_with_enough_slots(master: str) -> None:
    await_slots(session({}, master, cores=10), 10, 1, 0.0)


@pytest.mark.parametrize(("master", "offered"), [("local[9]", 9), ("local[9, 3]", 9), ("local[*]", 4), ("local", 1)])
def test_a_local_session_with_too_few_slots(master: str, offered: int) -> None:
    with pytest.raises(EngineError) as caught:
        await_slots(session({}, master), 10, 1, 60.0)
    assert str(caught.value) == (
        f"the pools need 10 slots at once; {master} offers {offered}: make it local[10] or more "
        "(slots may be more than there are cores), or shrink the pools"
    )


class TestSettings:
    def test_a_session_that_has_them_all(self) -> None:
        check_session(session(NEEDED))

    def test_all_that_a_session_lacks_are_listed_at_once(self) -> None:
        settings = NEEDED | {LISTED: "true"}
        del settings["spark.python.udf.pipelined.enabled"]
        with pytest.raises(EngineError) as caught:
            check_session(session(settings))
        assert str(caught.value) == (
            "the Spark session lacks settings that real-time mode needs: spark.python.udf.pipelined.enabled=true, "
            "spark.sql.streaming.realTimeMode.allowlistCheck=false; make it with all of penstock.spark_settings()"
        )

    def test_those_given_for_a_session_of_our_own_must_not_contradict(self) -> None:
        check_settings({"spark.driver.memory": "2g", LISTED: "false"})
        with pytest.raises(InputError, match=rf"^Spark settings: {LISTED} must be false; got true$"):
            check_settings({LISTED: "true"})

    def test_from_a_file_as_spark_submit_reads_it(self, tmp_path: Path) -> None:
        file = tmp_path / "spark.conf"
        file.write_text("# memory\nspark.driver.memory  2g\nspark.app.name=words of mine\n\nspark.local.dir: /data/a\n")
        expected = {"spark.driver.memory": "2g", "spark.app.name": "words of mine", "spark.local.dir": "/data/a"}
        assert read_settings(file) == expected

    def test_a_file_with_a_line_that_says_nothing(self, tmp_path: Path) -> None:
        file = tmp_path / "spark.conf"
        file.write_text("spark.driver.memory 2g\nfast\n")
        with pytest.raises(InputError, match="line 2 must be a key and a value; got 'fast'"):
            read_settings(file)
        with pytest.raises(InputError, match="cannot be read; No such file"):
            read_settings(tmp_path / "gone")


class TestThePythonOfASession:
    """One of another Python died five times with a NullPointerException, and nothing said why."""

    def test_one_without_penstock(self, tmp_path: Path) -> None:
        bare = tmp_path / "python"
        bare.write_text("#!/bin/sh\nexit 1\n")
        bare.chmod(0o755)
        spark = SimpleNamespace(sparkContext=SimpleNamespace(master="local[4]", pythonExec=str(bare)))
        with pytest.raises(EngineError, match=f"'{bare}', which cannot import penstock: set PYSPARK_PYTHON to "):
            check_python(spark)  # type: ignore[arg-type]

    def test_ours_and_that_of_a_cluster(self) -> None:
        for master, python in (("local[4]", sys.executable), ("spark://host:7077", "elsewhere")):
            check_python(SimpleNamespace(sparkContext=SimpleNamespace(master=master, pythonExec=python)))  # type: ignore[arg-type]


class TestTheMasterOfSparkSubmit:
    """`spark-submit --master yarn app.py` ran on local[N]: the run's own session overrode what it was told."""

    @pytest.fixture
    def submitted(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        """`submitted(master, command)`: Spark's JVM was there first and knows these."""
        monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")

        def jvm(master: str, command: str) -> None:
            known = {"spark.master": master, "sun.java.command": f"org.apache.spark.deploy.SparkSubmit {command}"}
            system = SimpleNamespace(getProperty=known.get)
            context = SimpleNamespace(
                _ensure_initialized=lambda: None,
                _jvm=SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=system))),
            )
            monkeypatch.setattr("penstock.engine.session.SparkContext", context)

        return jvm

    @pytest.mark.parametrize("master", ["yarn", "spark://host:7077", "local[64]"])
    def test_what_it_was_told_counts(self, submitted: Any, master: str) -> None:
        submitted(master, f"--master {master} app.py")
        assert submitted_master() == master

    def test_a_master_of_its_defaults_counts(self, submitted: Any) -> None:
        submitted("yarn", "app.py")
        assert submitted_master() == "yarn"

    def test_local_with_all_cores_counts_if_somebody_said_it(self, submitted: Any) -> None:
        submitted("local[*]", "--master local[*] app.py")
        assert submitted_master() == "local[*]"
        submitted("local[*]", "app.py")
        assert submitted_master() is None

    def test_a_program_that_starts_its_own_java(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--master 'local[7]' pyspark-shell")
        assert submitted_master() == "local[7]"
        monkeypatch.delenv("PYSPARK_SUBMIT_ARGS")
        assert submitted_master() is None


def test_what_is_written_to_standard_error_meanwhile_goes_to_the_file(tmp_path: Path) -> None:
    file = tmp_path / "spark.log"
    with _standard_error_to(file):
        os.write(2, b"from the JVM")
    assert file.read_bytes() == b"from the JVM"


class Growing:
    """A session whose executors come to use one after the other: the slots of each, at each look."""

    def __init__(self, *looks: tuple[int, ...], master: str = "spark://somewhere:7077") -> None:
        self.looks = list(looks)
        self.sparkContext = SimpleNamespace(master=master)

    def ready(self) -> dict[str, int]:
        slots = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        return {str(number): count for number, count in enumerate(slots)}


@pytest.fixture(autouse=True)
def _ready_executors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.engine.session.ready_executors", Growing.ready)


class TestExecutorsOfACluster:
    def test_they_are_waited_for(self) -> None:
        session = Growing((), (7,), (7, 7))
        await_slots(session, 14, 1, 10.0)  # type: ignore[arg-type]
        assert len(session.looks) == 1

    def test_one_with_slots_for_all_is_not_enough_where_replicas_are_to_be_spread_over_two(self) -> None:
        session = Growing((14,), (14, 14))
        await_slots(session, 14, 2, 10.0)  # type: ignore[arg-type]
        assert len(session.looks) == 1

    def test_too_few_slots_are_named(self) -> None:
        says = r"need 14 slots at once, on 1 or more executors; after 0\.1 s spark://\S+ offers 7 slots on 1: "
        with pytest.raises(EngineError, match=says):
            await_slots(Growing((7,)), 14, 1, 0.1)  # type: ignore[arg-type]


class TestInterruptsWhileSparkStarts:
    """Ctrl-C in the first seconds left a JVM that nobody ended: its Python had gone before it could say where it is."""

    @pytest.fixture(autouse=True)
    def as_in_a_terminal(self) -> Iterator[None]:
        """SIGINT has its usual effect, even where the tests run under nohup."""
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
        signal.signal(signal.SIGINT, before)

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_they_wait_until_it_has_started(self, number: int) -> None:
        steps: list[str] = []

        def start() -> None:
            with interrupts_held():
                os.kill(os.getpid(), number)
                steps.append("started")

        with pytest.raises(KeyboardInterrupt):
            start()
        assert steps == ["started"]

    def test_handlers_are_as_before(self) -> None:
        before = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
        with interrupts_held():
            pass
        assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == before

    def test_what_was_ignored_stays_ignored(self) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with interrupts_held():
            os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN

    def test_a_start_that_fails_says_why(self) -> None:
        def start() -> None:
            with interrupts_held():
                os.kill(os.getpid(), signal.SIGINT)
                raise ValueError("no Java")

        with pytest.raises(ValueError, match="no Java"):
            start()


class TestAMasterThatIsNotThere:
    """It took a minute, and ended in a Java stack trace."""

    def test_it_is_said_at_once(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
            check_masters(f"spark://127.0.0.1:{port}")
            check_masters(f"spark://127.0.0.1:1,127.0.0.1:{port}")
        told = f"the Spark master spark://127.0.0.1:{port} cannot be reached: 127.0.0.1:{port}: Connection refused"
        with pytest.raises(EngineError) as caught:
            check_masters(f"spark://127.0.0.1:{port}")
        assert str(caught.value) == told

    @pytest.mark.parametrize("master", ["spark://nowhere", "spark://127.0.0.1:port", "spark://"])
    def test_an_address_that_is_none(self, master: str) -> None:
        with pytest.raises(EngineError, match=f"the Spark master {master} cannot be reached"):
            check_masters(master)

    @pytest.mark.parametrize("master", ["", "local[4]", "yarn", "k8s://https://host"])
    def test_others_are_not_asked(self, master: str) -> None:
        check_masters(master)
