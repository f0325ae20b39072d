"""`penstock simulate` and `penstock compare`: what they write, and how they answer what is wrong."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.metrics.store import Store
from penstock.policy.registry import POLICIES
from penstock.report.run import RunReport
from penstock.report.workers import workers_of
from penstock.simulator import Cluster, Contest, Plant, Scenario

FIELDS = {
    *("policy", "saved_resources", "throughput_degradation", "processed_ratio", "latency_ms", "late_ratio"),
    *("replica_seconds", "oracle_ratio", "reconfigurations", "max_backlog", "dropped", "events", "wall_s"),
}
MODULE = """
from penstock.topology import Topology

def never(event):
    raise AssertionError("the simulator runs no function of the user's")

topology = Topology("mine", pool=3)
cleaned = topology.operator("clean", never, inputs=topology.source("lines"), execution_time_ms=20.0)
topology.operator("store", never, inputs=cleaned, execution_time_ms=10.0)

untimed = Topology("untimed")
untimed.operator("clean", never, inputs=untimed.source("lines"))

def counted(event, state):
    raise AssertionError("nor this one")

counting = Topology("counting", pool=6)
counting.operator("count", counted, inputs=counting.source("lines"), key="word", execution_time_ms=20.0)
"""


@pytest.fixture(autouse=True)
def user_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_DATA", str(tmp_path / "none"))
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", str(tmp_path))])
    (tmp_path / "my_app.py").write_text(MODULE)
    (tmp_path / "trace.csv").write_text("time_s,rate\n0,20\n30,120\n60,40\n90,40\n")
    yield tmp_path
    sys.modules.pop("my_app", None)


FIELDS_OF_A_SCENARIO = [one for part in (Scenario, Plant, Contest, Cluster) for one in fields(part)]


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_every_field_that_says_what_it_means_is_an_option(command: str) -> None:
    """One description: what the scenario says of a field is what the command line shows."""
    shown = {one.name: one for one in get_command(app).commands[command].params}  # type: ignore[attr-defined]
    told = [one for one in FIELDS_OF_A_SCENARIO if one.metadata.get("help")]
    assert {one.metadata["help"] for one in told} <= {one.help for one in shown.values() if hasattr(one, "help")}
    assert (shown["td"].default, shown["hop_ms"].default, shown["target_ms"].default) == (1.0, 2.5, 2000.0)
    assert shown["pool"].default is None


def penstock(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments)


def test_a_trace_with_a_missing_row_is_played_and_said(user_folder: Path) -> None:
    (user_folder / "gaps.csv").write_text("time_s,rate\n0,20\n10,20\n20,20\n40,40\n50,40\n")
    done = penstock("simulate", "my_app:topology", "--trace", "gaps.csv", "--policy", "psps", "--html", "page.html")
    assert done.exit_code == 0, done.output
    assert "60 s, 1,700 events" in " ".join(done.output.split())
    assert "; 1 of 6 steps is missing, and interpolated; td 1 s" in " ".join(done.output.split())
    assert "1 of 6 steps is missing" in (user_folder / "page.html").read_text()


def results(*arguments: str) -> list[dict[str, Any]]:
    done = penstock(*arguments, "--json", "result.json")
    assert done.exit_code == 0, done.output
    found: list[dict[str, Any]] = json.loads(Path("result.json").read_text())
    return found


def test_simulate_writes_a_list_of_one_object() -> None:
    (result,) = results("simulate", "twitter", "--trace", "trace.csv", "--policy", "psps", "--td", "10")
    assert result.keys() >= FIELDS
    assert result["policy"] == "psps"
    assert result["events"] == 20 * 30 + 120 * 30 + 40 * 60
    assert result["processed_ratio"] == 1.0
    assert result["latency_ms"].keys() == {"mean", "p50", "p99"}
    assert result["dropped"] == {}


def test_simulate_takes_the_default_policy_and_its_promise() -> None:
    options = ("--trace", "trace.csv", "--td", "5", "--target-ms", "500")
    (careful,) = results("simulate", "twitter", *options, "--late", "0.0001")
    (lax,) = results("simulate", "twitter", *options, "--late", "1")
    assert careful["policy"] == lax["policy"] == "penstock"
    assert careful["replica_seconds"] > lax["replica_seconds"]
    refused = penstock("simulate", "twitter", "--trace", "trace.csv", "--late", "0")
    assert (refused.exit_code, "late must be above 0; got 0" in refused.output) == (2, True)


def test_it_says_who_decided_where_there_is_a_canary() -> None:
    given = "simulate dns --rate 20 --duration 90 --policy static:4 --canary psps:minutes=1"
    done = CliRunner().invoke(app, given.split())
    assert done.exit_code == 0, done.output
    told = " ".join(done.output.split())
    assert "static:4 begins; psps decides in its shadow, and takes over if it is better for 1 min" in told
    assert "psps took over: over 60 s psps would have cost" in told


def test_compare_has_every_policy_once_and_writes_a_page() -> None:
    found = results("compare", "dns", "--trace", "trace.csv", "--policies", "all", "--td", "10", "--html", "page.html")
    names = [one["policy"] for one in found]
    assert len(names) == len(set(names))
    assert {name.partition(":")[0] for name in names} == set(POLICIES.distinct) - {"dynamic_allocation"}
    assert {"static:mean", "static:peak", "flink:short"} <= set(names)
    assert next(one for one in found if one["policy"] == "oracle")["oracle_ratio"] == 1.0
    assert Path("page.html").read_text().startswith("<!doctype html>")


def test_the_same_seed_gives_the_same_results() -> None:
    arguments = ("simulate", "sensitive", "--duration", "60", "--arrivals", "poisson", "--skew", "1.5", "--seed", "4")
    one, two = results(*arguments), results(*arguments)
    for result in (*one, *two):
        del result["wall_s"]
    assert one == two


def test_an_application_has_an_input_of_its_own() -> None:
    (result,) = results("simulate", "wordcount", "--policy", "static:peak", "--td", "60")
    assert result["events"] == pytest.approx(277.5 * 3600, rel=0.001)  # from 5 to 550 and back in an hour


def test_a_topology_of_the_users_is_simulated_without_running_it() -> None:
    (result,) = results("simulate", "my_app:topology", "--trace", "trace.csv", "--policy", "static:2")
    assert result["events"] == 6600
    slow = results(
        "simulate", "my_app:topology", "--trace", "trace.csv", "--policy", "static:2", "--service-ms", "clean=40"
    )
    assert slow[0]["latency_ms"]["mean"] > result["latency_ms"]["mean"]


COUNTING = ("simulate", "my_app:counting", "--trace", "trace.csv", "--policy", "psps", "--td", "10")


def test_state_moves_with_its_groups_and_more_of_it_waits_longer() -> None:
    (light,), (heavy,) = results(*COUNTING), results(*COUNTING, "--state-bytes", "count=100000")
    for result, size in ((light, 60), (heavy, 100_000)):
        kept = result["state"]["count"]
        assert (kept["state_keys"], kept["state_bytes"]) == (1024, 1024 * size)
        assert kept["groups_moved"] > 0
        assert kept["wait_ms"].keys() == {"mean", "max", "p50", "p99"}
    light_ms, heavy_ms = (one["state"]["count"]["wait_ms"]["mean"] for one in (light, heavy))
    assert heavy_ms > light_ms + 1000
    assert heavy["latency_ms"]["p99"] > light["latency_ms"]["p99"]
    (quick,) = results(*COUNTING, "--state-bytes", "count=100000", "--move-bandwidth", "1e9", "--move-latency", "0")
    assert quick["state"]["count"]["wait_ms"]["mean"] < heavy_ms


def test_state_is_told_where_there_is_some() -> None:
    told = " ".join(penstock(*COUNTING).output.split())
    assert "state of 'count': 0.0614 MB in 1,024 keys;" in told
    plain = penstock("simulate", "my_app:topology", "--rate", "5", "--duration", "20", "--policy", "static:1")
    assert "state of" not in plain.output


def test_bounds_drop_events_and_a_restart_loses_them() -> None:
    over = ("simulate", "dns", "--rate", "200", "--duration", "60", "--policy", "static:1")
    (late,) = results(*over, "--t-out", "5")
    assert set(late["dropped"]) == {"t_out"}
    assert late["processed_ratio"] < 1
    (full,) = results(*over, "--q-size", "50")
    assert set(full["dropped"]) == {"q_size"}
    (lost,) = results("simulate", "dns", "--trace", "trace.csv", "--actuation", "restart-lossy", "--restart", "5")
    assert lost["dropped"]["restart"] > 0


def test_the_paper_measure_of_load_can_be_asked_for() -> None:
    common = ("simulate", "twitter", "--td", "30", "--grouping", "load_balancing", "--duration", "3600")
    (ours,), (paper,) = results(*common), results(*common, "--balance-by", "used")
    assert ours["latency_ms"]["mean"] < paper["latency_ms"]["mean"]


SIMULATE = ("simulate", "twitter", "--trace", "trace.csv")
MISTAKES = {
    "no state": (
        (*SIMULATE, "--state-bytes", "clean=5"),
        "state_bytes: must name operators that keep state (none); got 'clean'",
    ),
    "bandwidth": ((*COUNTING, "--move-bandwidth", "0"), "move_bandwidth must be above 0; got 0.0"),
    "policy": (
        (*SIMULATE, "--policy", "pspss"),
        f"policy: no such name 'pspss'; known: {', '.join(POLICIES.names)}; did you mean 'psps'?",
    ),
    "one of several policies": (
        ("compare", "twitter", "--trace", "trace.csv", "--policies", "psps,kedda"),
        f"policy: no such name 'kedda'; known: {', '.join(POLICIES.names)}; did you mean 'keda'?",
    ),
    "option of a policy": (
        ("compare", "twitter", "--trace", "trace.csv", "--policies", "static:4,psps:tempo=3"),
        "policy 'psps': no such option 'tempo'; known: predecessor_backlog, use_forecast",
    ),
    "a forecaster that nothing would train": (
        (*SIMULATE, "--policy", "psps", "--forecaster", "svr"),
        "forecaster 'svr': must be trained before a loop can use it; ",
    ),
    "such a forecaster for several": (
        ("compare", "twitter", "--trace", "trace.csv", "--policies", "psps,cba", "--forecaster", "svr:24"),
        "forecaster 'svr': must be trained before a loop can use it; ",
    ),
    "no policies": (
        ("compare", "twitter", "--trace", "trace.csv", "--policies", ","),
        "policy: must be names separated by commas; got ','",
    ),
    "grouping": (
        (*SIMULATE, "--grouping", "suffle"),
        "grouping: no such name 'suffle'; known: shuffle, fields, load_balancing, online_shuffle, pull, least_work; "
        "did you mean 'shuffle'?",
    ),
    "actuation": (
        (*SIMULATE, "--actuation", "restart-lossless"),
        "actuation: no such name 'restart-lossless'; known: pool, restart, restart-lossy; "
        "did you mean 'restart-lossy'?",
    ),
    "arrivals": (
        (*SIMULATE, "--arrivals", "random"),
        "arrivals: no such name 'random'; known: even, poisson",
    ),
    "td": ((*SIMULATE, "--td", "0.1"), "interval: td must be at least 0.2 s; got 0.1 s"),
    "target": ((*SIMULATE, "--target-ms", "0"), "target_ms must be above 0; got 0.0"),
    "q_size": ((*SIMULATE, "--q-size", "0"), "q_size must be whole and at least 1; got 0"),
    "hop": ((*SIMULATE, "--hop-ms", "-1"), "hop_s must be at least 0; got -0.001"),
    "slots": ((*SIMULATE, "--slots", "3"), "slots must be at least 1 for each of 4 operators; got 3"),
    "replicas": (
        (*SIMULATE, "--replicas", "clean=9"),
        "replicas of 'clean' must be from 1 to its pool of 8; got 9",
    ),
    "trace and rate": ((*SIMULATE, "--rate", "5"), "give either --trace FILE or --rate R, not both"),
    "own topology without input": (
        ("simulate", "my_app:topology"),
        "app 'my_app:topology': give its input with --trace FILE or --rate R",
    ),
    "own topology without times": (
        ("simulate", "my_app:untimed", "--rate", "5"),
        "operator 'clean' (my_app.py:12): the simulator must know how long an event takes; declare "
        "execution_time_ms or calibrate with the store of a run",
    ),
    "no store to calibrate with": ((*SIMULATE, "--calibrate", "gone.db"), "store 'gone.db': no such file"),
    "where JSON cannot go": ((*SIMULATE, "--json", "trace.csv/x.json"), "file 'trace.csv/x.json': cannot be written; "),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_answered_in_one_sentence(case: str) -> None:
    arguments, sentence = MISTAKES[case]
    done = penstock(*arguments)
    assert done.exit_code == 2, done.output
    assert "".join(f"error: {sentence}".split()) in "".join(done.output.split())


class TestLevels:
    """Replicas on workers: `--levels` and `--workers`."""

    def given(self, tmp_path, *options):
        file = tmp_path / "out.json"
        arguments = ["simulate", "dns", "--rate", "60", "--duration", "300", "--td", "30", "--json", str(file)]
        ran = CliRunner().invoke(app, [*arguments, *options])
        return ran, json.loads(file.read_text())[0] if file.exists() else None

    def test_e2df_has_both_levels_by_default(self, tmp_path):
        ran, result = self.given(tmp_path, "--policy", "e2df")
        assert ran.exit_code == 0, ran.output
        assert result["worker_seconds"] > 0
        assert result["workers_saved"] > 0
        assert "worker-seconds" in ran.output

    def test_other_policies_have_room_for_every_replica(self, tmp_path):
        _, result = self.given(tmp_path, "--policy", "psps")
        assert result["worker_seconds"] is None

    def test_static_levels_save_nothing(self, tmp_path):
        _, result = self.given(tmp_path, "--policy", "e2df", "--levels", "static")
        assert result["workers_saved"] == 0
        assert result["saved_resources"] == 0

    def test_the_word_count_is_compared_with_the_static_deployment_of_its_paper(self):
        static, both = (
            results("simulate", "wordcount", "--policy", "e2df", "--levels", levels, "--td", "30")[0]
            for levels in ("static", "both")
        )
        assert (static["r_over"], static["saved_resources"], static["worker_seconds"]) == (14, 0, 16 * 3600)
        assert both["saved_resources"] >= 0.55
        assert both["workers_saved"] >= 0.24
        assert both["latency_ms"]["mean"] <= 2 * static["latency_ms"]["mean"]
        assert (both["processed_ratio"], both["late_ratio"]) == (1, 0)

    def test_other_times_are_compared_with_what_their_peak_needs(self):
        options = ("--levels", "static", "--duration", "60", "--service-ms", "split=3,counter=2,consumer=2")
        assert results("simulate", "wordcount", *options, "--rate", "550")[0]["r_over"] == 14
        assert results("simulate", "wordcount", *options, "--rate", "110")[0]["r_over"] == 5

    def test_a_store_has_what_a_run_on_spark_would_leave(self, tmp_path):
        ran, result = self.given(tmp_path, "--policy", "e2df", "--store", "sim.db")
        assert ran.exit_code == 0, ran.output
        with closing(Store("sim.db", must_exist=True)) as store:
            (run,) = store.runs()
            assert (run.topology, run.policy, run.settings["simulated"]) == ("dns", "e2df", True)
            assert run.finished_at is not None
            rows = store.workers(run.run)
            assert {row.number for row in rows} == {row.number for row in store.intervals(run.run)}
            assert [row.sequence for row in store.managers(run.run)]
            drawn = workers_of(RunReport.from_store(store, run.run))
        assert drawn is not None
        assert drawn.worker_seconds == 30 * len(rows) == pytest.approx(result["worker_seconds"], rel=0.1)

    def test_several_policies_are_kept_apart(self, tmp_path):
        arguments = ["compare", "dns", "--policies", "psps,oracle", "--rate", "60", "--duration", "60"]
        assert CliRunner().invoke(app, [*arguments, "--store", "sim.db"]).exit_code == 0
        with closing(Store("sim.db", must_exist=True)) as store:
            assert [run.policy for run in store.runs()] == ["psps", "oracle"]
            assert all(store.intervals(run.run) for run in store.runs())
            assert not any(store.workers(run.run) for run in store.runs())

    def test_a_store_that_cannot_be(self, tmp_path):
        ran, _ = self.given(tmp_path, "--store", "mysql://host/db")
        assert ran.exit_code == 2
        assert "store: must be SQLite or PostgreSQL; got 'mysql'" in " ".join(ran.output.split())

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--workers", "4"], "workers: must come with levels static, application or both"),
            (["--levels", "two"], "levels: no such name 'two'"),
            (["--levels", "both", "--workers", "1"], "cluster: 1 workers of 1 cannot host"),
        ],
    )
    def test_what_makes_no_sense(self, tmp_path, options, message):
        ran, _ = self.given(tmp_path, *options)
        assert ran.exit_code == 2
        assert message in " ".join(ran.output.split())


class TestRegions:
    """Workers in several regions: `--regions`."""

    def given(self, *options):
        arguments = ("simulate", "dns", "--rate", "150", "--duration", "600", "--td", "30", "--policy", "e2df")
        return results(*arguments, *options)[0]

    def test_what_each_region_came_to(self):
        result = self.given("--regions", "near:capacity=2,price=1,start=10; far:capacity=4,price=0.6,start=30")
        assert result["regions"].keys() == {"near", "far"}
        far = result["regions"]["far"]
        assert far["price"] == pytest.approx(0.6 * far["worker_seconds"])
        assert far["worker_seconds"] > 0

    def test_latency_shows_the_delay(self):
        near, far = (
            self.given("--regions", f"near:capacity=2;far:capacity=4,delay_ms={delay}")["latency_ms"]["mean"]
            for delay in (0, 200)
        )
        assert far > near + 20


REGIONS = (*SIMULATE, "--levels", "both", "--regions")
REGION_MISTAKES = {
    "no levels": ((*SIMULATE, "--regions", "near"), "regions: must come with levels static, application or both"),
    "no region": ((*REGIONS, ";"), "regions: must be names, each once"),
    "twice": ((*REGIONS, "a;a:price=2"), "regions: must be names, each once"),
    "no number": ((*REGIONS, "a:price=cheap"), "regions: region 'a': price must be a number; got 'cheap'"),
    "no value": ((*REGIONS, "a:price"), "regions: region 'a': price must be a number; got ''"),
    "half a slot": ((*REGIONS, "a:capacity=1.5"), "regions: region 'a': capacity must be a whole number; got 1.5"),
    "no slot": ((*REGIONS, "a:capacity=0"), "worker size 'a': capacity must be at least 1 replica; got 0"),
    "negative delay": ((*REGIONS, "a:delay_ms=-1"), "region 'a': delay_s must be at least 0; got -0.001"),
    "least_work": (
        (*REGIONS, "a;b:delay_ms=9", "--grouping", "least_work"),
        "grouping 'least_work' knows no delays between regions",
    ),
}


@pytest.mark.parametrize("case", REGION_MISTAKES)
def test_a_mistake_in_regions(case: str) -> None:
    arguments, sentence = REGION_MISTAKES[case]
    done = penstock(*arguments)
    assert done.exit_code == 2, done.output
    assert "".join(sentence.split()) in "".join(done.output.split())
