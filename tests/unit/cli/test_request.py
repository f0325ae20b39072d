"""What the user asked for, checked and built before Spark starts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.apps import APPS
from penstock.cli.request import RunRequest, data_folder, new_folder, parse_pairs
from penstock.control.declare import workload_of
from penstock.errors import InputError, TopologyError
from penstock.sinks import QueueSink
from penstock.workload import Trace

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
    monkeypatch.delenv("PENSTOCK_DATA", raising=False)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", str(tmp_path))])
    (tmp_path / "my_app.py").write_text(MODULE)
    yield tmp_path
    sys.modules.pop("my_app", None)


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    """Ten steps of a second, at 10 and 30 events per second in turn."""
    path = tmp_path / "trace.csv"
    path.write_text("time_s,rate\n" + "".join(f"{n},{30 if n % 2 else 10}\n" for n in range(10)))
    return path


def request(app: str = "twitter", **options: Any) -> RunRequest:
    return RunRequest(app=app, **options)


# ── pairs ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "kind", "pairs"),
    [
        (None, int, {}),
        ("", int, {}),
        ("clean=2", int, {"clean": 2}),
        ("clean=2,store=4", int, {"clean": 2, "store": 4}),
        (" clean = 2 , store=4,", int, {"clean": 2, "store": 4}),
        ("clean=2.5", float, {"clean": 2.5}),
    ],
)
def test_pairs(text: str | None, kind: Any, pairs: dict[str, Any]) -> None:
    assert parse_pairs("--pool", text, kind) == pairs


@pytest.mark.parametrize(
    ("text", "kind", "part"),
    [("clean", int, "clean"), ("clean=", int, "clean="), ("clean=two", int, "clean=two"), ("a=1,b=x", float, "b=x")],
)
def test_a_bad_pair_is_named(text: str, kind: Any, part: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_pairs("--pool", text, kind)
    assert str(caught.value) == f"--pool: must be operator={kind.__name__},…; got {part!r}"


# ── the trace ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_constant_rate_lasts_a_minute_unless_said_otherwise() -> None:
    assert request(rate=5.0).build_trace().events == pytest.approx(300)
    assert request(rate=5.0, duration_s=2.5).build_trace().duration_s == pytest.approx(2.5)


def test_a_trace_is_rescaled_then_compressed_then_cut(trace_file: Path) -> None:
    built = request(trace=trace_file, mean_rate=100.0, speedup=2.0, duration_s=2.0).build_trace()
    assert built.step_s == 0.5
    assert built.rates.tolist() == pytest.approx([50, 150, 50, 150])
    assert request(trace=trace_file).build_trace().rates.tolist() == [10.0, 30.0] * 5


def test_a_duration_beyond_the_trace_is_the_whole_trace(trace_file: Path) -> None:
    assert request(trace=trace_file, duration_s=99.0).build_trace().duration_s == pytest.approx(10)


@pytest.mark.parametrize("given", [{}, {"rate": 5.0, "trace": Path("trace.csv")}])
def test_a_trace_or_a_rate_and_not_both(given: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        request(**given).build_trace()
    assert str(caught.value) == "give either --trace FILE or --rate R"


@pytest.mark.parametrize("given", [{"mean_rate": 10.0}, {"speedup": 2.0}])
def test_a_constant_rate_is_not_rescaled(given: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="with --rate there is none"):
        request(rate=5.0, **given).build_trace()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"rate": -1.0}, "rate must not be negative; got -1.0"),
        ({"rate": float("nan")}, "rate must be a finite number; got nan"),
        ({"rate": 5.0, "duration_s": 0.0}, "duration_s must be positive; got 0.0"),
        ({"rate": 5.0, "duration_s": -1.0}, "duration_s must be positive; got -1.0"),
    ],
)
def test_a_bad_rate_or_duration(given: dict[str, Any], told: str) -> None:
    """A duration of 0 used to mean a minute."""
    with pytest.raises(InputError) as caught:
        request(**given).build_trace()
    assert str(caught.value).endswith(told)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"speedup": 0.0}, "speedup must be positive; got 0.0"),
        ({"mean_rate": -2.0}, "mean_rate must be positive; got -2.0"),
        ({"duration_s": 0.0}, "duration_s must be positive; got 0.0"),
    ],
)
def test_a_bad_change_of_a_trace(trace_file: Path, given: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as caught:
        request(trace=trace_file, **given).build_trace()
    assert str(caught.value).endswith(told)


# ── the topology ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("app", APPS)
def test_every_shipped_app_is_built_with_the_users_options(app: str, tmp_path: Path) -> None:
    operators = request(app).build_topology(tmp_path).operators
    last = list(operators)[-1]
    built = request(app, pools={last: 3}, service_ms={last: 7.0}).build_topology(tmp_path)
    assert (built[last].pool, built[last].execution_time_ms) == (3, 7.0)
    if not APPS[app].publishes:
        assert built[last].run._url == f"sqlite:///{tmp_path / 'events.db'}"


def test_the_word_count_publishes_to_a_queue(tmp_path: Path) -> None:
    """By default into a file of the run's folder, which is not made before the run is."""
    run = request("wordcount").build_topology(tmp_path)["consumer"].run
    assert isinstance(run, QueueSink)
    assert run._queue._url == f"sqlite:///{tmp_path / 'queue.db'}"  # type: ignore[attr-defined]
    assert not (tmp_path / "queue.db").exists()
    request("wordcount", sink=f"sqlite:///{tmp_path / 'mine.db'}").build_topology(tmp_path)
    assert (tmp_path / "mine.db").is_file()
    with pytest.raises(InputError, match="queue sink: must be amqp, amqps or sqlite; got 'postgresql'"):
        request("wordcount", sink="postgresql://host/db").build_topology(tmp_path)


def test_a_broker_is_tried_before_anything_starts(tmp_path: Path) -> None:
    pytest.importorskip("pika", reason="needs the package pika")
    for app, queue in (("wordcount", "consumer"), ("twitter", "store")):
        with pytest.raises(InputError, match=f"queue '{queue}' at amqp://127.0.0.1:1/: cannot be reached; "):
            request(app, sink="amqp://guest:guest@127.0.0.1:1/").build_topology(tmp_path)


def test_the_sinks_of_a_shipped_app_store_where_the_user_says(tmp_path: Path) -> None:
    built = request(sink="sqlite:///elsewhere.db").build_topology(tmp_path)
    assert built["store"].run._url == "sqlite:///elsewhere.db"
    with pytest.raises(InputError, match="database sink: 'elsewhere' is not a database URL"):
        request(sink="elsewhere").build_topology(tmp_path)


def test_grouping_is_for_operators_without_a_key(tmp_path: Path) -> None:
    shipped = request("wordcount", grouping="load_balancing").build_topology(tmp_path)
    assert [one.grouping for one in shipped.operators.values()] == ["load_balancing", "fields", "load_balancing"]
    own = request("my_app:topology", grouping="load_balancing").build_topology(tmp_path)
    assert {one.grouping for one in own.operators.values()} == {"load_balancing"}
    keyed = request("my_app:keyed", grouping="load_balancing").build_topology(tmp_path)
    assert {one.grouping for one in keyed.operators.values()} == {"fields"}


def test_a_topology_of_the_users_own_gets_the_users_pools(tmp_path: Path) -> None:
    built = request("my_app:topology", pools={"end": 5}).build_topology(tmp_path)
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
        ("twitter", {"grouping": "random"}, "--grouping: no such name 'random'"),
        ("twitter", {"grouping": "fields"}, "grouping 'fields' needs a key; got none"),
        ("my_app:topology", {"pools": {"frist": 2}}, "topology 'mine': no operator 'frist'; known: first, end"),
        ("my_app:topology", {"service_ms": {"end": 2.0}}, "--service-ms is for the shipped applications"),
        ("my_app:topology", {"grouping": "random"}, "--grouping: no such name 'random'"),
        ("my_app:keyed", {"grouping": "random"}, "--grouping: no such name 'random'"),
    ],
)
def test_a_topology_that_cannot_be_built(tmp_path: Path, app: str, given: dict[str, Any], told: str) -> None:
    with pytest.raises((InputError, TopologyError)) as caught:
        request(app, **given).build_topology(tmp_path)
    assert told in str(caught.value)


# ── the source ──────────────────────────────────────────────────────────────────────────────────────────────────────

STEADY = Trace("steady", 1.0, [5.0] * 4)


def test_made_events_are_the_same_for_the_same_seed() -> None:
    first, again, other = (request(seed=seed).build_source(STEADY).read(range(20)) for seed in (1, 1, 2))
    assert first == again != other
    assert len(first) == 20


def test_events_of_the_users_own_file(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text('{"n": 1}\n{"n": 2}\n')
    source = request("my_app:topology", events=file).build_source(STEADY)
    assert source.total == 20
    assert source.read(range(3)) == [{"n": 1}, {"n": 2}, {"n": 1}]


@pytest.mark.parametrize(
    ("app", "events", "told"),
    [
        ("my_app:topology", None, "app 'my_app:topology': give its events with --events FILE (JSON lines or CSV)"),
        ("twitter", Path("gone.jsonl"), "--events: no file or folder 'gone.jsonl'"),
        ("twitter", Path("my_app.py"), "file source 'my_app.py': must end in .jsonl, .ndjson or .csv; got '.py'"),
    ],
)
def test_a_source_that_cannot_be_built(app: str, events: Path | None, told: str) -> None:
    with pytest.raises(InputError) as caught:
        request(app, events=events).build_source(STEADY)
    assert str(caught.value) == told


def test_real_data_is_looked_for_where_the_user_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert data_folder("events") is None
    (tmp_path / "data" / "events").mkdir(parents=True)
    monkeypatch.setenv("PENSTOCK_DATA", str(tmp_path / "data"))
    assert data_folder("events") == tmp_path / "data" / "events"
    assert data_folder("traces") is None


# ── the rest ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_run_options_are_the_users(tmp_path: Path) -> None:
    options = request(t_out_s=3.0, q_size=7, td_s=2.0).run_options(tmp_path)
    assert (options.mode, options.t_out_s, options.q_size, options.folder) == ("realtime", 3.0, 7, tmp_path)
    assert options.report_every_s == 0.25  # several times an interval
    assert request(td_s=60.0).run_options(tmp_path).report_every_s == 0.5


def test_every_run_has_a_folder_of_its_own(tmp_path: Path) -> None:
    folders = [new_folder("my_app:topology") for _ in range(3)]
    assert len(set(folders)) == 3
    assert all(folder.is_dir() and folder.parent == tmp_path / "out" for folder in folders)
    assert all(folder.name.startswith("my_app-topology-") for folder in folders)


def test_a_static_run_is_sized_by_the_traces_rates_and_the_declared_shares(tmp_path: Path) -> None:
    """Wordcount's words are several for a sentence."""
    topology = request("wordcount").build_topology(tmp_path)
    workload = workload_of(topology, Trace("t", 1.0, [10.0, 30.0, 50.0, 10.0]), {"split": 0.01})
    assert (workload.peak_rate, workload.mean_rate, workload.execution_times_s) == (50.0, 25.0, {"split": 0.01})
    assert workload.shares["split"] == 1.0
    assert workload.shares["counter"] == topology["split"].selectivity["out"] > 1
