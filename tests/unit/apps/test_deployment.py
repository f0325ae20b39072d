"""An application made ready to run: its topology, its sinks and its events, checked before Spark starts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.apps import APPS
from penstock.apps.deployment import Deployment
from penstock.control.declare import workload_of
from penstock.engine.run import Run
from penstock.errors import InputError, TopologyError
from penstock.sinks import QueueSink
from penstock.sources import KafkaSource, TraceSource
from penstock.workload import Trace, constant

MODULE = """
from penstock.topology import Topology

def build(key=None):
    topology = Topology("mine", pool=2)
    first = topology.operator("first", len, inputs=topology.source("events"), key=key)
    topology.operator("end", len, inputs=first, key=key)
    return topology

topology = build()
keyed = build("word")
"""


@pytest.fixture(autouse=True)
def user_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, with a module of the user's and no real data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_DATA", str(tmp_path / "none"))
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", str(tmp_path))])
    (tmp_path / "my_app.py").write_text(MODULE)
    yield tmp_path
    sys.modules.pop("my_app", None)


def deployment(app: str = "twitter", **options: Any) -> Deployment:
    return Deployment(app=app, **options)


# ── the topology ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("app", APPS)
def test_every_shipped_app_is_built_with_the_users_options(app: str, tmp_path: Path) -> None:
    operators = deployment(app).topology(tmp_path).operators
    last = list(operators)[-1]
    built = deployment(app, pools={last: 3}, service_ms={last: 7.0}).topology(tmp_path)
    assert (built[last].pool, built[last].execution_time_ms) == (3, 7.0)
    if not APPS[app].publishes:
        assert str(built[last].run._database.url) == f"sqlite:///{tmp_path / 'events.db'}"


def test_the_word_count_publishes_to_a_queue(tmp_path: Path) -> None:
    """By default into a file of the run's folder, which is not made before the run is."""
    run = deployment("wordcount").topology(tmp_path)["consumer"].run
    assert isinstance(run, QueueSink)
    assert str(run._queue._database.url) == f"sqlite:///{tmp_path / 'queue.db'}"  # type: ignore[attr-defined]
    assert not (tmp_path / "queue.db").exists()
    mine = deployment("wordcount", sink=f"sqlite:///{tmp_path / 'mine.db'}").topology(tmp_path)["consumer"].run
    assert str(mine._queue._database.url) == f"sqlite:///{tmp_path / 'mine.db'}"  # type: ignore[union-attr]
    with pytest.raises(InputError, match="queue sink: must be amqp, amqps or sqlite; got 'postgresql'"):
        deployment("wordcount", sink="postgresql://host/db").topology(tmp_path)


def test_a_broker_is_tried_before_anything_starts(tmp_path: Path) -> None:
    for app, queue in (("wordcount", "consumer"), ("twitter", "store")):
        built = deployment(app, sink="amqp://guest:guest@127.0.0.1:1/").topology(tmp_path)
        with pytest.raises(InputError, match=f"queue '{queue}' at amqp://127.0.0.1:1/: cannot be reached; "):
            Run(built, TraceSource(constant(1.0, 1.0), [{}])).start()


def test_streams_of_kafka_by_their_urls(tmp_path: Path) -> None:
    """The topics are looked at when the run starts, not before."""
    mine = deployment("twitter", sink="kafka://127.0.0.1:1/out?level=committed")
    assert repr(mine.topology(tmp_path)["store"].run) == "kafka sink 'out' at 127.0.0.1:1"
    found = mine.sources(["kafka://127.0.0.1:1/in?group=g"])
    assert list(found) == ["tweets"]
    assert isinstance(found["tweets"], KafkaSource)
    with pytest.raises(InputError, match="source: must be a URL such as kafka://host:9092/topic; got 'http://x'"):
        mine.sources(["http://x"])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["kafka://h/a", "kafka://h/b"], "source 'tweets': must be given once; got 'kafka://h/b' besides"),
        (
            ["twets=kafka://h/a?sasl.password=hush"],
            "must be NAME=URL, with NAME one of tweets; got 'twets=kafka://h/a'",
        ),
        (["http://ann:hush@h/a?x=hush"], "must be a URL such as kafka://host:9092/topic; got 'http://h/a'"),
    ],
)
def test_a_source_that_cannot_be_is_told_without_its_password(given: list[str], told: str) -> None:
    """Of two URLs for one source the first was forgotten without a word, and passwords were shown."""
    with pytest.raises(InputError) as caught:
        deployment("twitter").sources(given)
    assert told in str(caught.value)
    assert "hush" not in str(caught.value)


def test_the_sinks_of_a_shipped_app_store_where_the_user_says(tmp_path: Path) -> None:
    built = deployment(sink="sqlite:///elsewhere.db").topology(tmp_path)
    assert str(built["store"].run._database.url) == "sqlite:///elsewhere.db"
    with pytest.raises(InputError, match="database sink: must be the URL of a database; got 'elsewhere'"):
        deployment(sink="elsewhere").topology(tmp_path)
    with pytest.raises(InputError, match=r"sink: must be a URL of kafka, amqp, .*; got 'redis://h/1'"):
        deployment(sink="redis://:hush@h/1").topology(tmp_path)


def test_grouping_is_for_operators_without_a_key(tmp_path: Path) -> None:
    shipped = deployment("wordcount", grouping="load_balancing").topology(tmp_path)
    assert [one.grouping for one in shipped.operators.values()] == ["load_balancing", "fields", "load_balancing"]
    own = deployment("my_app:topology", grouping="load_balancing").topology(tmp_path)
    assert {one.grouping for one in own.operators.values()} == {"load_balancing"}
    keyed = deployment("my_app:keyed", grouping="load_balancing").topology(tmp_path)
    assert {one.grouping for one in keyed.operators.values()} == {"fields"}


def test_a_sink_reads_all_that_the_last_operators_give(tmp_path: Path) -> None:
    """Of an operator with several streams it read the first only, and the run was refused: nobody read the others."""
    lines = ["from penstock import Topology", "topology = Topology('mine')", "read = topology.source('events')"]
    lines += ["topology.operator('sort', len, inputs=read, outputs=('hot', 'cold'))"]
    (tmp_path / "sorting_app.py").write_text("\n".join(lines))
    built = deployment("sorting_app:topology", sink="sqlite:///out.db").topology(tmp_path)
    assert [(one.sender, one.name) for one in built["sink"].inputs] == [("sort", "hot"), ("sort", "cold")]


def test_a_topology_of_the_users_own_gets_the_users_pools(tmp_path: Path) -> None:
    built = deployment("my_app:topology", pools={"end": 5}).topology(tmp_path)
    assert (built["first"].pool, built["end"].pool) == (2, 5)


@pytest.mark.parametrize(
    ("app", "given", "told"),
    [
        ("twiter", {}, "app 'twiter': no such application; known: twitter, complex, "),
        ("no_module:topology", {}, "topology 'no_module:topology': no module 'no_module' in "),
        ("my_app:toplogy", {}, "topology 'my_app:toplogy': my_app has no 'toplogy'; it has Topology, build, topology"),
        ("twitter", {"pools": {"clena": 2}}, "app 'twitter': pools: no operator 'clena'; known: clean, classify"),
        ("twitter", {"service_ms": {"clena": 2.0}}, "app 'twitter': service_ms: no operator 'clena'; known: clean"),
        ("twitter", {"service_ms": {"clean": -1.0}}, "service_ms of 'clean' must not be negative; got -1.0"),
        ("twitter", {"pools": {"clean": 0}}, "pool must be at least 1; got 0"),
        ("twitter", {"grouping": "random"}, "grouping: no such name 'random'"),
        ("twitter", {"grouping": "fields"}, "grouping 'fields' needs a key; got none"),
        ("my_app:topology", {"pools": {"frist": 2}}, "topology 'mine': no operator 'frist'; known: first, end"),
        ("my_app:topology", {"service_ms": {"end": 2.0}}, "service_ms is for the shipped applications"),
        ("my_app:topology", {"grouping": "random"}, "grouping: no such name 'random'"),
        ("my_app:keyed", {"grouping": "random"}, "grouping: no such name 'random'"),
    ],
)
def test_a_topology_that_cannot_be_built(tmp_path: Path, app: str, given: dict[str, Any], told: str) -> None:
    with pytest.raises((InputError, TopologyError)) as caught:
        deployment(app, **given).topology(tmp_path)
    assert told in str(caught.value)


# ── the source ──────────────────────────────────────────────────────────────────────────────────────────────────────

STEADY = Trace("steady", 1.0, [5.0] * 4)


def test_made_events_are_the_same_for_the_same_seed() -> None:
    first, again, other = (deployment(seed=seed).source(STEADY).read(range(20)) for seed in (1, 1, 2))
    assert first == again != other
    assert len(first) == 20


def test_events_of_the_users_own_file(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text('{"n": 1}\n{"n": 2}\n')
    source = deployment("my_app:topology", events=file).source(STEADY)
    assert source.total == 20
    assert source.read(range(3)) == [{"n": 1}, {"n": 2}, {"n": 1}]


@pytest.mark.parametrize(
    ("app", "events", "told"),
    [
        ("my_app:topology", None, "app 'my_app:topology': give its events with --events FILE (JSON lines or CSV)"),
        ("twitter", Path("gone.jsonl"), "events: no file or folder 'gone.jsonl'"),
        ("twitter", Path("my_app.py"), "file source 'my_app.py': must end in .jsonl, .ndjson or .csv; got '.py'"),
    ],
)
def test_a_source_that_cannot_be_built(app: str, events: Path | None, told: str) -> None:
    with pytest.raises(InputError) as caught:
        deployment(app, events=events).source(STEADY)
    assert str(caught.value) == told


def test_a_static_run_is_sized_by_the_traces_rates_and_the_declared_shares(tmp_path: Path) -> None:
    """Wordcount's words are several for a sentence."""
    topology = deployment("wordcount").topology(tmp_path)
    workload = workload_of(topology, Trace("t", 1.0, [10.0, 30.0, 50.0, 10.0]), {"split": 0.01})
    assert (workload.peak_rate, workload.mean_rate, workload.execution_times_s) == (50.0, 25.0, {"split": 0.01})
    assert workload.shares["split"] == 1.0
    assert workload.shares["counter"] == topology["split"].selectivity["out"] > 1
