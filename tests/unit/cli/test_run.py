"""`penstock run`: the input that it plays, and where it leaves what it leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from penstock.cli import live as live_module
from penstock.cli.run import drive, new_folder, trace_of
from penstock.errors import InputError
from penstock.workload import Trace


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    """Ten steps of a second, at 10 and 30 events per second in turn."""
    path = tmp_path / "trace.csv"
    path.write_text("time_s,rate\n" + "".join(f"{n},{30 if n % 2 else 10}\n" for n in range(10)))
    return path


def made(**given: Any) -> Trace:
    nothing = dict.fromkeys(("source", "events", "trace", "rate", "duration", "mean_rate"))
    trace = trace_of(nothing | {"speedup": 1.0} | given)
    assert trace is not None
    return trace


def test_a_constant_rate_lasts_a_minute_unless_said_otherwise() -> None:
    assert made(rate=5.0).events == pytest.approx(300)
    assert made(rate=5.0, duration=2.5).duration_s == pytest.approx(2.5)


def test_a_trace_is_rescaled_then_compressed_then_cut(trace_file: Path) -> None:
    built = made(trace=trace_file, mean_rate=100.0, speedup=2.0, duration=2.0)
    assert built.step_s == 0.5
    assert built.rates.tolist() == pytest.approx([50, 150, 50, 150])
    assert made(trace=trace_file).rates.tolist() == [10.0, 30.0] * 5


def test_a_duration_beyond_the_trace_is_the_whole_trace(trace_file: Path) -> None:
    assert made(trace=trace_file, duration=99.0).duration_s == pytest.approx(10)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "give its input with --source URL, --trace FILE or --rate R"),
        ({"rate": 5.0, "trace": Path("trace.csv")}, "give either --trace FILE or --rate R, not both"),
    ],
)
def test_a_trace_or_a_rate_and_not_both(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as caught:
        made(**given)
    assert str(caught.value) == told


@pytest.mark.parametrize("given", [{"mean_rate": 10.0}, {"speedup": 2.0}])
def test_a_constant_rate_is_not_rescaled(given: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="with --rate there is none"):
        made(rate=5.0, **given)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"rate": -1.0}, "rate must be a number of at least 0; got -1.0"),
        ({"rate": float("nan")}, "rate must be a number of at least 0; got nan"),
        ({"rate": 5.0, "duration": 0.0}, "duration_s must be a number above 0; got 0.0"),
        ({"rate": 5.0, "duration": -1.0}, "duration_s must be a number above 0; got -1.0"),
    ],
)
def test_a_bad_rate_or_duration(given: dict[str, Any], told: str) -> None:
    """A duration of 0 used to mean a minute."""
    with pytest.raises(InputError) as caught:
        made(**given)
    assert str(caught.value).endswith(told)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"speedup": 0.0}, "speedup must be a number above 0; got 0.0"),
        ({"mean_rate": -2.0}, "mean_rate must be a number above 0; got -2.0"),
        ({"duration": 0.0}, "duration_s must be a number above 0; got 0.0"),
    ],
)
def test_a_bad_change_of_a_trace(trace_file: Path, given: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as caught:
        made(trace=trace_file, **given)
    assert str(caught.value).endswith(told)


def test_every_run_has_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folders = [new_folder("my_app:topology") for _ in range(3)]
    assert len(set(folders)) == 3
    assert all(folder.is_dir() and folder.parent == tmp_path / "out" for folder in folders)
    assert all(folder.name.startswith("my_app-topology-") for folder in folders)


def test_ctrl_c_says_that_what_is_in_flight_is_finished_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It was silent for up to a minute: half of it here, and half when the run was stopped."""
    live, told = MagicMock(), MagicMock()
    live.__enter__.return_value = live
    live.__exit__.return_value = False
    live.wait.side_effect = [False, KeyboardInterrupt]
    live.summary.return_value = {}
    live.run.folder = tmp_path
    live.stopping = False
    monkeypatch.setattr(live_module, "LiveView", told)
    monkeypatch.setattr(live_module, "tell", told)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    drive(live, "app", None, None)
    live.run.stop_sources.assert_called_once()
    live.run.wait_drained.assert_not_called()  # the stop does that
    assert "finishes what is in flight, for up to 30 s; Ctrl-C again ends it at once" in capsys.readouterr().err
