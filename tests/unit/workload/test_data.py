"""Where real data is looked for, and that compressed files count as plain ones do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.workload import data, data_file, data_folder, find_file


@pytest.fixture(autouse=True)
def no_folder_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PENSTOCK_DATA", raising=False)


def test_a_checkout_has_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # from wherever it is asked
    for name in ("traces", "events", "forecast"):
        assert data_folder(name) == Path(__file__).resolve().parents[3] / "data" / name
    assert data_folder("none") is None


def test_the_users_folder_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "events").mkdir()
    monkeypatch.setenv("PENSTOCK_DATA", str(tmp_path))
    assert data_folder("events") == tmp_path / "events"
    assert data_folder("traces") is None


def test_an_installed_package_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data" / "traces").mkdir(parents=True)  # somebody else's
    monkeypatch.setattr(data, "_PACKAGE", tmp_path / "site-packages" / "penstock")
    assert data_folder("traces") is None


def test_a_plain_file_comes_before_a_compressed_one(tmp_path: Path) -> None:
    assert find_file(None, "rates.csv") is None
    assert find_file(tmp_path, "rates.csv") is None
    for name in ("rates.csv.gz", "rates.csv"):
        (tmp_path / name).touch()
        assert find_file(tmp_path, "rates.csv") == tmp_path / name


def test_a_file_that_must_be_there() -> None:
    assert data_file("traces", "dns_wrccdc_2018_1s.csv").name == "dns_wrccdc_2018_1s.csv.gz"
    with pytest.raises(InputError, match=r"data: no file traces/none.csv in \$PENSTOCK_DATA or"):
        data_file("traces", "none.csv")


def test_every_file_is_described() -> None:
    """Where it comes from, and under which terms."""
    root = Path(__file__).resolve().parents[3] / "data"
    names = {re.sub(r"(_(5min|15min|1h))?\.csv\.gz$", "", path.name) for path in root.glob("*/*")}
    page = (root / "README.md").read_text()
    assert {name for name in names if f"`{name}`" not in page} == set()
