"""What is an HDFS's own: how it is reached, and what its errors become. That it keeps files is in test_storage."""

from __future__ import annotations

import io
import os
import uuid
from multiprocessing import get_context
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.storage import storage_at
from penstock.errors import InputError
from tests.services import free_port
from tests.services.hdfs import Hdfs
from tests.waiting import LONG_S

native = pytest.importorskip(
    "penstock.common.hdfs_storage", reason="hdfs-native is not installed", exc_type=ImportError
)


def test_what_was_being_written_when_somebody_died_is_no_file_and_is_removed(hdfs: Hdfs) -> None:
    storage = storage_at(hdfs.uri(f"runs/{uuid.uuid4().hex}"))
    (storage / "state").write("1.0", b"one")
    (storage / "state")._client.create(f"{storage._path}/state/2.0.ab.new").close()
    assert (storage / "state").names() == ["1.0"]
    storage.tidy()
    assert len((storage / "state")._files()) == 1


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_process_that_was_forked_reaches_it_as_well(hdfs: Hdfs) -> None:
    """Spark forks its workers: threads of a client that the parent has used are not there."""
    uri = hdfs.uri(f"runs/{uuid.uuid4().hex}")
    storage_at(uri).write("run.json", b"{}")
    child = get_context("fork").Process(target=lambda: storage_at(uri).write("state", b"one"))
    child.start()
    child.join(LONG_S)
    assert child.exitcode == 0
    assert storage_at(uri).read("state") == b"one"


def test_a_file_is_its_owners_only(hdfs: Hdfs) -> None:
    storage: Any = storage_at(hdfs.uri(f"runs/{uuid.uuid4().hex}"))
    storage.write("run.json", b"{}")
    assert storage._client.get_file_info(f"{storage._path}/run.json").permission & 0o777 == 0o600


def test_where_a_folder_should_be_is_a_file(hdfs: Hdfs) -> None:
    """hdfs-native tells it as a RuntimeError with Java's stack, which would have ended the thread of a lease."""
    storage = storage_at(hdfs.uri(f"runs/{uuid.uuid4().hex}"))
    storage.write("state", b"")
    with pytest.raises(OSError, match=r"^HDFS: .*") as raised:
        (storage / "state").write("1.0", b"one")
    assert "\n" not in str(raised.value)


def test_an_hdfs_that_is_away_is_an_os_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(native.PATIENCE, "dfs.client.failover.max.attempts", "1")
    storage = storage_at(f"hdfs://127.0.0.1:{free_port()}/runs/words")
    for ask in (storage.names, lambda: storage.read("run.json"), lambda: storage.write("run.json", b"{}")):
        with pytest.raises(OSError, match="refused"):
            ask()


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("hdfs://host:8020", "must name a folder, as hdfs://host:8020/run"),
        ("hdfs://host:8020/", "must name a folder"),
        ("hdfs://ann:sea@host:8020/run", "a login is not in the URI"),
        ("hdfs://host:80 20/run", "cannot be used; "),
    ],
)
def test_a_uri_that_cannot_be_used_is_refused(uri: str, said: str) -> None:
    with pytest.raises(InputError, match=f"^checkpoints '.*': .*{said}") as raised:
        storage_at(uri)
    assert "sea" not in str(raised.value)


class File(bytes):
    """As hdfs-native's."""

    def read_range(self, offset: int, size: int) -> bytes:
        assert 0 <= offset <= offset + size <= len(self)
        return self[offset : offset + size]


SEEK = st.tuples(st.integers(-30, 60), st.sampled_from([os.SEEK_SET, os.SEEK_CUR, os.SEEK_END]))


@given(data=st.binary(max_size=40), steps=st.lists(st.one_of(st.integers(-1, 50), SEEK)), buffer=st.integers(1, 20))
def test_it_is_read_and_sought_in_as_any_file(data: bytes, steps: list[Any], buffer: int) -> None:
    ours, plain = io.BufferedReader(native._Reader(File(data)), buffer), io.BytesIO(data)
    for step in steps:
        if isinstance(step, int):
            assert ours.read(step) == plain.read(step)
        elif step[1] != os.SEEK_SET or step[0] >= 0:
            assert ours.seek(*step) == plain.seek(*step)
