"""The daemon that workers are forked from: what each of them does not have to do again."""

from __future__ import annotations

import importlib
import sys
import zipfile
import zipimport
from pathlib import Path

import psutil
import pytest

from penstock.engine.worker.daemon import keep_archives, use_arrow


def test_workers_do_not_read_archives_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each spent 0.2 s of CPU time on that: with thirteen workers, about half of a restart."""
    archive = tmp_path / "some.zip"
    with zipfile.ZipFile(archive, "w") as made:
        for name in ("zipped_for_a_test/__init__.py", "zipped_for_a_test/part.py", "zipped_for_a_test/later.py"):
            made.writestr(name, "")
    monkeypatch.syspath_prepend(archive)
    monkeypatch.setattr(sys, "path_importer_cache", dict(sys.path_importer_cache))
    importlib.import_module("zipped_for_a_test.part")
    read: list[object] = []
    monkeypatch.setattr(zipimport.zipimporter, "invalidate_caches", lambda self: read.append(self))
    keep_archives()
    importlib.invalidate_caches()
    assert read == []
    assert all(isinstance(one, zipimport.zipimporter) for one in sys.path_importer_cache.values())
    assert importlib.import_module("zipped_for_a_test.later").__name__ == "zipped_for_a_test.later"
    for name in ("", ".part", ".later"):
        monkeypatch.delitem(sys.modules, f"zipped_for_a_test{name}")


def test_arrow_is_used_without_threads_of_its_own() -> None:
    """They would not be there in a forked worker, which would wait for them."""
    before = psutil.Process().num_threads()
    use_arrow()
    assert psutil.Process().num_threads() == before
