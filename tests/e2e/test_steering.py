"""A live run on Spark, steered from its page, another terminal and Python; then carried on by another driver."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

import penstock
from penstock.cli.main import app
from penstock.metrics.store import Store
from tests.waiting import LONG_S, until

from ..services.tab import Tab
from .shown import check_checkpoints


def same(event: dict[str, int]) -> dict[str, int]:
    return event


def chain(folder: Path) -> penstock.Topology:
    topology = penstock.Topology("chain", pool=4)
    first = topology.operator("first", same, inputs=topology.source("numbers"))
    topology.operator("end", penstock.CollectSink(folder / "out"), inputs=first, pool=2)
    return topology


def elastic(folder: Path) -> penstock.Elastic:
    """A run of an hour in that folder, new or carried on."""
    source = penstock.TraceSource(penstock.constant(50, 3600), [{"n": 1}])
    run = penstock.Run(chain(folder), source, options=penstock.RunOptions(folder=folder, checkpoint_every_s=1.0))
    return penstock.Elastic(run, "static:1", td_s=0.5, warm_up_s=0.5, store=folder / "metrics.db", ui="0")


def write(tab: Tab, selector: str, text: str) -> None:
    """Type into a field."""
    field = f"document.querySelector({json.dumps(selector)})"
    tab.value(f"({field}.value = {json.dumps(text)}, {field}.dispatchEvent(new Event('input')))")


def click(tab: Tab, selector: str) -> None:
    tab.value(f"document.querySelector({json.dumps(selector)}).click()")


def answer(tab: Tab) -> str:
    tab.until("document.getElementById('answer').textContent !== ''")
    return str(tab.value("document.getElementById('answer').textContent"))


def ctl(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["ctl", *map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.output


def active(live: penstock.Elastic) -> dict[str, int]:
    return {name: len(replicas) for name, replicas in live.run.active.items()}


def steer_from_the_page(tab: Tab, live: penstock.Elastic) -> None:
    assert live.access is not None
    tab.open(f"{live.ui_url}run/{live.name}")
    tab.until("document.querySelector('#steer:not([hidden]) tr[data-operator=first]') !== null")
    write(tab, "#name-of", "Ana")
    write(tab, "#token", "guessed")
    write(tab, "[aria-label='first: replicas by hand']", "3")
    click(tab, "tr[data-operator=first] td:last-child button")
    assert "needs the run's token" in answer(tab)
    assert active(live) == {"first": 1, "end": 1}
    write(tab, "#token", live.access.token)
    click(tab, "tr[data-operator=first] td:last-child button")
    until(lambda: active(live) == {"first": 3, "end": 1})
    tab.until("document.getElementById('in-force').textContent === 'by order: first by hand: 3 replicas'")
    tab.until("document.querySelector('[data-name=first] text:nth-of-type(2)').textContent === '3/4'")
    tab.until("document.getElementById('orders').textContent.includes('Ana (127.0.0.1)')")


def test_a_run_is_steered_while_it_goes_on_and_by_its_next_driver(tab: Tab, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with elastic(folder) as live:
        until(lambda: live.loop_state.seen)
        steer_from_the_page(tab, live)
        tab.until("Number(document.querySelector('#checkpoints td:nth-child(5)').textContent) > 1")
        assert ctl("show", folder) == "in force: first by hand: 3 replicas\n"
        assert "frozen" in ctl("freeze", folder, "--who", "Ben")
        live.steer(penstock.UsePolicy("static:2"))
        live.steer(penstock.SetTd(1.0))
        until(lambda: live.loop is not None and live.loop.td_s == 1.0)
        assert active(live) == {"first": 3, "end": 1}, "frozen"
        refused = CliRunner().invoke(app, ["ctl", "hold", str(folder), "frist", "2"])
        assert (refused.exit_code, "did you mean 'first'?" in " ".join(refused.output.split())) == (2, True)
        ctl("stop", folder, "--who", "Ben")
        live.wait(LONG_S)
        assert live.stopping
    done = live.counters().operators["end"].total.processed
    tab.until("document.getElementById('state').textContent === 'ended'")
    assert not (folder / "steer.json").exists()
    check_kept(folder, live.name)
    with closing(Store(str(folder / "metrics.db"), must_exist=True)) as store:
        check_checkpoints(tab, store, live.name)
    with elastic(folder) as again:
        until(lambda: again.loop_state.seen)
        assert again.steering.told == ("frozen", "first by hand: 3 replicas", "policy static:2", "td 1 s")
        assert active(again) == {"first": 3, "end": 1}
        assert again.access is not None
        assert live.access is not None
        assert again.access.token != live.access.token
        again.steer(penstock.Unfreeze(), who="Ana")
        again.steer(penstock.Release("first"), who="Ana")
        until(lambda: active(again) == {"first": 2, "end": 2})
        again.steer(penstock.Stop())
    more = again.counters().operators["end"].total.processed
    assert len(penstock.collected(folder / "out")) == done + more, "from the savepoint on, nothing twice"


def check_kept(folder: Path, run: str) -> None:
    """The store has who gave which order."""
    with closing(Store(str(folder / "metrics.db"), must_exist=True)) as store:
        kept: list[Any] = [(re.sub(r" \(.*\)", "", row.who), row.order["order"]) for row in store.steering(run)]
    me = kept[2][0]
    assert kept == [("Ana", "hold"), ("Ben", "freeze"), (me, "policy"), (me, "td"), ("Ben", "stop")]
    assert me
