"""What only a store in a file of SQLite has to keep to: other processes, other files, older versions."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from penstock.errors import InputError
from penstock.metrics.rows import (
    LateRow,
    RunRow,
)
from penstock.metrics.store import Store

from .stored import order, record

READ = "import sys; from penstock.metrics.store import Store; print(len(Store(sys.argv[1]).intervals('r')))"


class TestSqlite:
    def test_another_process_reads_in_the_middle_of_a_transaction(self, tmp_path):
        path = tmp_path / "metrics.sqlite"
        with closing(Store(str(path))) as store:
            store.start_run(RunRow(run="r", topology="t", policy="p", td_s=1, started_at="now"))
            store.write("r", record(0))
            with closing(sqlite3.connect(path)) as writer:
                writer.execute("BEGIN EXCLUSIVE")
                command = [sys.executable, "-c", READ, path]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout == "1\n"

    def test_a_reader_makes_no_new_file(self, tmp_path):
        with pytest.raises(InputError, match="no such file"):
            Store(str(tmp_path / "none.sqlite"), must_exist=True)

    def test_a_file_that_is_no_store(self, tmp_path):
        path = tmp_path / "notes.txt"
        path.write_text("not a database, and long enough to be read as one" * 20)
        with pytest.raises(InputError, match="cannot be opened; file is not a database"):
            Store(str(path))

    def test_a_reader_leaves_another_database_alone(self, tmp_path):
        path = tmp_path / "events.db"
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE events (id TEXT)")
        with pytest.raises(InputError, match="has no tables of runs"):
            Store(str(path), must_exist=True)
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("events",)]

    def test_a_folder_that_cannot_be_made(self, tmp_path):
        (tmp_path / "notes.txt").write_text("a file")
        with pytest.raises(InputError, match=r"store '.*m\.db': cannot be opened; .*File exists"):
            Store(str(tmp_path / "notes.txt" / "m.db"))

    def test_tables_of_another_version(self, tmp_path):
        path = str(tmp_path / "metrics.sqlite")
        Store(path).close()
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("UPDATE schema_version SET version = 99")
            connection.commit()
        with pytest.raises(InputError, match="tables must be of version 1 to 9; got 99"):
            Store(path)

    @pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6, 7, 8])
    def test_a_store_of_an_older_version(self, version, tmp_path):
        """A reader leaves it as it is; a run that writes to it adds what it lacks, and loses nothing."""
        path = old_store(tmp_path / "metrics.sqlite", version)
        before, kept, workers = path.read_bytes(), 4 * (version >= 2), version >= 3
        with closing(Store(str(path), must_exist=True)) as reader:
            assert (reader.version, len(reader.intervals("r")), len(reader.timetables("r"))) == (version, 1, kept)
            assert (len(reader.workers("r")), len(reader.pauses("r")), len(reader.faults("r"))) == (
                2 * workers,
                workers,
                version >= 4,
            )
            assert (len(reader.waiting("r")), reader.steering("r")) == (2 * (version >= 5), [])
            late = [LateRow(number=0, late=3)] if version >= 7 else []
            assert (reader.promise("r"), reader.lateness("r"), reader.scores("r")) == (None, late, [])
            assert reader.checkpoints("r") == []
        assert path.read_bytes() == before
        with closing(Store(str(path))) as store:
            store.write("r", record(1))
            store.write_order("r", order(1))
            assert [row.number for row in store.intervals("r")] == [0, 1]
            assert {row.number for row in store.timetables("r")} == ({0, 1} if kept else {1})
            assert {row.number for row in store.workers("r")} == ({0, 1} if workers else {1})
        with closing(Store(str(path), must_exist=True)) as reader:
            assert (reader.version, len(reader.timetables("r"))) == (9, kept + 4)
            assert (len(reader.workers("r")), len(reader.managers("r"))) == (2 + 2 * workers, 2 + 2 * workers)
            assert (len(reader.pauses("r")), len(reader.faults("r"))) == (1 + workers, 1 + (version >= 4))
            assert [row.number for row in reader.waiting("r")] == [*([0, 0] if version >= 5 else []), 1, 1]
            assert reader.steering("r") == [order(1)]
            assert (reader.promise("r"), reader.lateness("r")) == (None, [*late, LateRow(number=1, late=3)])
            assert [row.number for row in reader.checkpoints("r")] == [1]

    @pytest.mark.parametrize("place", ["sqlite://", "sqlite:///:memory:"])
    def test_memory_is_refused(self, place):
        with pytest.raises(InputError, match="SQLite needs a file"):
            Store(place)


WORKERS = ("workers", "managers", "pauses")
LATEST = ("faults", "waiting", "steering", "promises", "lateness", "scores", "limits", "shadows", "deciders")
LATEST += ("checkpoints",)
LATER_TABLES = {
    1: ("timetables", *WORKERS, *LATEST),
    2: (*WORKERS, *LATEST),
    3: LATEST,
    4: LATEST[1:],
    5: LATEST[2:],
    6: LATEST[3:],
    7: LATEST[5:],
    8: LATEST[9:],
}


def old_store(path, version):
    """A store with one interval, as that version left it."""
    with closing(Store(str(path))) as store:
        store.start_run(RunRow(run="r", topology="t", policy="p", td_s=1, started_at="now"))
        store.write("r", record(0))
    with closing(sqlite3.connect(path)) as connection:
        for table in LATER_TABLES[version]:
            connection.execute(f"DROP TABLE {table}")
        connection.execute("UPDATE schema_version SET version = ?", (version,))
        connection.commit()
    return path
