"""`penstock run`: whatever is wrong is answered in one sentence, before anything starts."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock.cli.console import write_text
from penstock.cli.main import app
from penstock.cli.run import run
from penstock.engine.options import RunOptions
from penstock.engine.run import Run
from penstock.forecast.registry import FORECASTERS
from penstock.policy.registry import POLICIES

MODULE = """
from penstock.topology import Topology

topology = Topology("mine", pool=2)
topology.operator("first", len, inputs=topology.source("events"))

broken = Topology("broken")
broken.operator("first", len, inputs=broken.source("events"))
broken.operator("second", len, inputs="frist")
"""

TRACES = {
    "good": "time_s,rate\n0,5\n1,5\n",
    "negative": "time_s,rate\n0,5\n1,-5\n",
    "nan": "time_s,rate\n0,5\n1,nan\n",
    "unordered": "time_s,rate\n1,5\n0,5\n",
    "words": "time_s,rate\n0,five\n1,5\n",
    "short": "time_s,rate\n0,5\n",
    "header": "when,what\n0,5\n1,5\n",
    "empty": "",
}


@pytest.fixture(autouse=True)
def user_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, with traces good and bad and a module of the user's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_DATA", str(tmp_path / "none"))
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", str(tmp_path))])
    (tmp_path / "my_app.py").write_text(MODULE)
    (tmp_path / "events.jsonl").write_text('{"n": 1}\n')
    for name, text in TRACES.items():
        (tmp_path / f"{name}.csv").write_text(text)
    yield tmp_path
    sys.modules.pop("my_app", None)


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """The runs that were started: none may be, and none is."""
    runs: list[Run] = []

    def start(run: Run) -> Run:
        runs.append(run)
        raise AssertionError("the run was started")

    monkeypatch.setattr(Run, "start", start)
    return runs


def penstock(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments)


MINE = ("run", "my_app:topology", "--events", "events.jsonl", "--rate", "5")
STREAM = ("run", "twitter", "--source", "kafka://h/t")
TWITTER = ("run", "twitter", "--rate", "5")

CASES = {
    "no trace file": (
        ("run", "twitter", "--trace", "gone.csv"),
        "trace 'gone.csv': the file must exist; nothing is there",
    ),
    "negative rate in a trace": (
        ("run", "twitter", "--trace", "negative.csv"),
        "trace 'negative.csv' line 3: rate must not be negative; got -5.0",
    ),
    "nan in a trace": (
        ("run", "twitter", "--trace", "nan.csv"),
        "trace 'nan.csv' line 3: rate must be a finite number; got nan",
    ),
    "unordered trace": (
        ("run", "twitter", "--trace", "unordered.csv"),
        "trace 'unordered.csv' line 3: time must be after that of the row before; got a step of -1 s",
    ),
    "words in a trace": (
        ("run", "twitter", "--trace", "words.csv"),
        "trace 'words.csv' line 2: rate must be a number; got 'five'",
    ),
    "trace of one row": (
        ("run", "twitter", "--trace", "short.csv"),
        "trace 'short.csv': a trace must have at least 2 rows; got 1",
    ),
    "trace with another header": (
        ("run", "twitter", "--trace", "header.csv"),
        "trace 'header.csv' line 1: the header must be 'time_s,rate' or 'date,rate'; got 'when,what'",
    ),
    "empty trace": (
        ("run", "twitter", "--trace", "empty.csv"),
        "trace 'empty.csv' line 1: the header must be 'time_s,rate' or 'date,rate'; got ''",
    ),
    "a trace and a rate": (
        ("run", "twitter", "--trace", "good.csv", "--rate", "5"),
        "give either --trace FILE or --rate R, not both",
    ),
    "a stream and a rate": ((*STREAM, "--rate", "5"), "give one of --source URL, --trace FILE and --rate R"),
    "a stream at a rate": (
        (*STREAM, "--speedup", "2"),
        "--mean-rate, --speedup and --events are for a trace or a rate, and not for --source",
    ),
    "no duration of a stream": ((*STREAM, "--duration", "-1"), "run: --duration must be a number above 0; got -1.0"),
    "neither trace nor rate": (("run", "twitter"), "give its input with --source URL, --trace FILE or --rate R"),
    "negative rate": (
        ("run", "twitter", "--rate", "-5"),
        "trace 'constant': rate must be a number of at least 0; got -5.0",
    ),
    "no duration": ((*TWITTER, "--duration", "0"), "trace 'constant': duration_s must be a number above 0; got 0.0"),
    "unknown app": (
        ("run", "twiter", "--rate", "5"),
        "app 'twiter': no such application; known: twitter, complex, dns, wordcount, insensitive, sensitive, "
        "complex_sensitive, averages, or module:topology of your own; did you mean 'twitter'?",
    ),
    "unknown module": (
        ("run", "other_app:topology", "--rate", "5"),
        "topology 'other_app:topology': no module 'other_app' in {folder} or on Python's path",
    ),
    "a topology that cannot run": (
        ("run", "my_app:broken", "--events", "events.jsonl", "--rate", "5"),
        "operator 'second' (my_app.py:9): reads 'frist', which does not exist; known: events, first, second",
    ),
    "own app without events": (
        ("run", "my_app:topology", "--rate", "5"),
        "app 'my_app:topology': give its events with --events FILE (JSON lines or CSV)",
    ),
    "no events file": ((*TWITTER, "--events", "gone.jsonl"), "events: no file or folder 'gone.jsonl'"),
    "unknown operator in --replicas": (
        (*TWITTER, "--replicas", "clena=2"),
        "topology 'twitter': no operator 'clena'; known: clean, classify, author, store",
    ),
    "unknown operator in --pool": (
        (*TWITTER, "--pool", "clena=2"),
        "app 'twitter': pools: no operator 'clena'; known: clean, classify, author, store",
    ),
    "unknown operator in --service-ms": (
        (*TWITTER, "--service-ms", "clena=2"),
        "app 'twitter': service_ms: no operator 'clena'; known: clean, classify, author, store",
    ),
    "malformed --replicas": ((*TWITTER, "--replicas", "clean"), "--replicas: must be operator=int,…; got 'clean'"),
    "replicas beyond the pool": (
        (*MINE, "--replicas", "first=3"),
        "operator 'first' (my_app.py:5): replicas must be from 1 to the pool of 2; got 3",
    ),
    "no replicas": (
        (*MINE, "--replicas", "first=0"),
        "operator 'first' (my_app.py:5): replicas must be from 1 to the pool of 2; got 0",
    ),
    "unknown grouping": (
        (*MINE, "--grouping", "random"),
        "grouping: no such name 'random'; known: shuffle, fields, load_balancing, online_shuffle, pull",
    ),
    "unknown policy": (
        (*TWITTER, "--policy", "hope"),
        f"policy: no such name 'hope'; known: {', '.join(POLICIES.names)}",
    ),
    "unknown forecaster": (
        (*TWITTER, "--forecaster", "prophecy"),
        f"forecaster: no such name 'prophecy'; known: {', '.join(FORECASTERS.names)}",
    ),
    "a forecaster that nothing would train": (
        (*TWITTER, "--forecaster", "svr:window=12"),
        "forecaster 'svr': must be trained before a loop can use it; train it with 'penstock train --models svr "
        "--out models', and then give 'trained:folder=models'",
    ),
    "a setting without a value": ((*TWITTER, "--conf", "fast"), "--conf: must be KEY=VALUE; got 'fast'"),
    "a setting that real-time mode needs otherwise": (
        (*TWITTER, "--conf", "spark.python.udf.pipelined.enabled=false"),
        "Spark settings: spark.python.udf.pipelined.enabled must be true; got false",
    ),
    "workers of no cluster": ((*TWITTER, "--workers", "2"), "--workers needs --cluster local or spark://HOST:PORT"),
    "unknown cluster": (
        (*TWITTER, "--cluster", "yarn"),
        "cluster must be local or spark://HOST:PORT; got 'yarn'",
    ),
    "no workers": (
        (*TWITTER, "--cluster", "local", "--workers", "0..2"),
        "workers must be a number or least..most, from 1 on; got '0..2'",
    ),
    "too few slots": (
        (*TWITTER, "--policy", "psps", "--slots", "3"),
        "slots must be at least 1 for each of 4 operators; got 3",
    ),
    "a policy that knows the future": (
        (*TWITTER, "--policy", "oracle"),
        "policy 'oracle': knows the future, which only the simulator can tell it",
    ),
    "no queue": ((*TWITTER, "--q-size", "0"), "q_size must be whole and at least 1; got 0"),
    "no time": ((*TWITTER, "--t-out", "0"), "t_out_s must be above 0; got 0.0"),
    "too short an interval": ((*TWITTER, "--td", "0.1"), "interval: td must be at least 0.2 s; got 0.1 s"),
    "no interval": ((*TWITTER, "--td", "nan"), "interval: td must be at least 0.2 s; got nan s"),
    "checkpoints too often": (
        (*TWITTER, "--checkpoint-every", "0.5"),
        "checkpoint_every_s must be at least 1; got 0.5",
    ),
    "a sink that is no database": (
        (*TWITTER, "--sink", "mysql://host/db"),
        "sink: must be a URL of kafka, amqp, amqps, sqlite or postgresql; got 'mysql://host/db'",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_is_one_sentence_and_nothing_starts(case: str, started: list[Run], user_folder: Path) -> None:
    arguments, told = CASES[case]
    result = penstock(*arguments)
    assert result.output == f"error: {told.format(folder=user_folder)}\n"
    assert result.exit_code == 2
    assert started == []
    assert list((user_folder / "out").glob("*")) == []  # nothing is left behind


def test_what_the_shipped_apps_say_of_an_unknown_grouping(started: list[Run]) -> None:
    result = penstock(*TWITTER, "--grouping", "random")
    assert result.exit_code == 2
    assert "grouping: no such name 'random'; known: " in " ".join(result.output.split())
    assert started == []


def test_brackets_in_a_message_are_printed_as_they_are() -> None:
    """They used to be taken for rich's markup: '[old]' vanished, and '[/old]' ended in a stack trace."""
    for name in ("[old].csv", "[/old].csv"):
        result = penstock("run", "twitter", "--trace", name)
        assert result.output == f"error: trace '{name}': the file must exist; nothing is there\n"
        assert result.exit_code == 2


@pytest.mark.parametrize(
    "arguments", [("run",), ("run", "twitter", "--rate", "much"), ("run", "twitter", "--rte", "5")]
)
def test_what_typer_itself_refuses(arguments: tuple[str, ...], started: list[Run]) -> None:
    assert penstock(*arguments).exit_code == 2
    assert started == []


def test_a_request_without_mistakes_is_started(started: list[Run]) -> None:
    """The counterproof: only the mistake kept the others from starting."""
    result = penstock(*MINE, "--replicas", "first=2")
    assert str(result.exception) == "the run was started"
    assert [run.active for run in started] == [{"first": (0, 1)}]


def test_a_summary_is_written_into_a_folder_that_is_not_there_yet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It used to be lost at the end of the run, in a stack trace."""
    write_text(tmp_path / "new" / "folder" / "summary.json", "{}\n")
    assert (tmp_path / "new" / "folder" / "summary.json").read_text() == "{}\n"
    write_text(Path("-"), "{}\n")
    assert capsys.readouterr().out == "{}\n"


def test_checkpoints_are_as_frequent_as_from_python() -> None:
    """The command kept to five minutes, the length of a batch, when they became seconds."""
    assert inspect.signature(run).parameters["checkpoint_every"].default == RunOptions().checkpoint_every_s


def test_resume_needs_a_run() -> None:
    done = CliRunner().invoke(app, ["run", "wordcount", "--rate", "5", "--resume", "nowhere"])
    assert done.exit_code != 0
    assert "--resume: no run in 'nowhere', as there is no file run.json" in " ".join(done.output.split())


def test_another_run_is_not_resumed(tmp_path: Path) -> None:
    """What differs is said, and the folder is left alone."""
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / "run.json").write_text(
        '{"id": "a", "mode": "microbatch", "source_slots": 1, "topology": {}, "version": 2}'
    )
    done = CliRunner().invoke(app, ["run", "wordcount", "--rate", "5", "--resume", str(folder)])
    assert done.exit_code != 0
    assert "holds a run that cannot be carried on so: mode was 'microbatch', is 'realtime'" in " ".join(
        done.output.split()
    )
    assert (folder / "run.json").is_file()


def test_a_run_of_an_older_version_is_not_resumed(tmp_path: Path) -> None:
    """What to do is said, and the folder is left alone."""
    (tmp_path / "run.json").write_text('{"id": "a", "mode": "realtime", "source_slots": 1, "topology": {}}')
    done = CliRunner().invoke(app, ["run", "wordcount", "--rate", "5", "--resume", str(tmp_path)])
    assert done.exit_code != 0
    said = "holds a run of format 1; this version of Penstock carries on format 2: finish it with the version that"
    assert said in " ".join(done.output.split())
    assert (tmp_path / "run.json").is_file()
