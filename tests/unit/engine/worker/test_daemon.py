"""The daemon that workers are forked from: what each of them does not have to do again."""

from __future__ import annotations

import importlib
import os
import subprocess
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


START = "from penstock.engine.worker.daemon import preload, seed_anew; preload(); "


def started(code: str, libraries: str, folder: Path, *arguments: str) -> str:
    """What a process that begins like the daemon prints."""
    environment = os.environ | {"PENSTOCK_PRELOAD": libraries, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    command = [sys.executable, "-c", START + code, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_libraries_are_imported_and_what_they_print_does_not_reach_spark(tmp_path: Path) -> None:
    """Spark reads the port from standard output; what cannot be imported is left to workers."""
    (tmp_path / "speaks.py").write_text("print('hello')\n")
    told = started("import sys; print('speaks' in sys.modules)", "speaks,not_there_at_all", tmp_path)
    assert told == "True\n"


@pytest.mark.parametrize(
    "holds",
    ["import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()", "f = open(__file__)"],
)
def test_what_cannot_be_shared_is_left_to_workers(holds: str, tmp_path: Path) -> None:
    """A thread is not there after a fork, and a connection that several processes write to is of no use to any."""
    (tmp_path / "quiet.py").write_text("")
    (tmp_path / "holds.py").write_text(holds)
    code = "import os, sys; print(os.environ['PENSTOCK_PRELOAD'], 'holds' in sys.modules, 'quiet' in sys.modules)"
    assert started(code, "holds,quiet", tmp_path) == "quiet False True\n"


def test_workers_draw_random_numbers_of_their_own(tmp_path: Path) -> None:
    """With the state of the daemon's generator all replicas would draw the same."""
    drawn = "import os, numpy; seed_anew(); os.fork(); os.write(1, f'{numpy.random.random()}\\n'.encode())"
    told = started(drawn, "", tmp_path).split()
    assert len(told) == len(set(told)) == 2
