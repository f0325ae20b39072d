"""What holds for every folder: of this machine, of a file system that renames, of an object store, of an HDFS."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.common.arrow_storage import ArrowStorage
from penstock.common.storage import LocalStorage, Storage, storage_at
from penstock.errors import InputError


@pytest.fixture(params=["local", "renaming", "s3", "hdfs"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "local":
        return storage_at(tmp_path / "a run")
    if request.param == "renaming":
        pytest.importorskip("fsspec")
        return storage_at(f"fsspec+memory://{uuid.uuid4().hex}/run")
    if request.param == "hdfs":
        return storage_at(request.getfixturevalue("hdfs").uri(f"runs/a%20{uuid.uuid4().hex}"))
    return storage_at(request.getfixturevalue("object_store").uri("storage", uuid.uuid4().hex))


def test_what_is_written_is_read(storage: Storage) -> None:
    storage.write("run.json", b"{}")
    (storage / "state" / "count").write("1.0.0", b"one")
    storage.write("run.json", b"[]")
    assert (storage.read("run.json"), (storage / "state" / "count").read("1.0.0")) == (b"[]", b"one")
    assert storage.names() == ["run.json"]
    assert (storage / "state" / "count").names() == ["1.0.0"]
    assert (storage / "state").names() == []


def test_what_is_not_there_is_not_found(storage: Storage) -> None:
    for missing in (lambda: storage.read("none"), lambda: storage.open("none")):
        with pytest.raises(FileNotFoundError):
            missing()
    storage.remove("none")
    storage.tidy()
    assert (storage.names(), (storage / "none").names()) == ([], [])


def test_a_file_is_read_in_parts(storage: Storage) -> None:
    with storage.create("segment") as file:
        file.write(b"head")
        assert file.tell() == 4
        file.write(b"tail")
    with storage.open("segment") as file:
        assert file.seek(0, 2) == 8
        file.seek(4)
        assert file.read(4) == b"tail"


def test_a_file_that_fails_is_not_there_and_the_one_before_it_stays(storage: Storage) -> None:
    storage.write("run.json", b"old")

    def fail(name: str) -> None:
        with storage.create(name) as file:
            file.write(b"new")
            raise ZeroDivisionError

    for name in ("run.json", "other"):
        with pytest.raises(ZeroDivisionError):
            fail(name)
    assert storage.names() == ["run.json"]
    assert storage.read("run.json") == b"old"


def test_a_file_that_is_removed_is_gone(storage: Storage) -> None:
    storage.write("1.json", b"{}")
    storage.remove("1.json")
    storage.remove("1.json")
    assert storage.names() == []


def test_what_is_gathered_may_be_larger_than_what_is_good_in_memory(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.common.storage.IN_MEMORY_BYTES", 10)
    data = bytes(range(256)) * 30_000
    with storage.create("large") as file:
        for begin in range(0, len(data), 100_000):
            file.write(data[begin : begin + 100_000])
    assert storage.read("large") == data


def test_what_somebody_was_writing_when_he_died_is_removed(tmp_path: Path) -> None:
    """A driver that was killed while it wrote left files that stayed for ever."""
    storage = storage_at(tmp_path)
    storage.write("run.json", b"{}")
    (storage / "state" / "count").write("1.0.0", b"one")
    for left in (tmp_path / "run.json.77.new", tmp_path / "state" / "count" / "2.0.0.78.new"):
        left.write_bytes(b"half")
    assert (storage / "state" / "count").names() == ["1.0.0"]
    storage.tidy()
    assert sorted(one.name for one in tmp_path.rglob("*") if one.is_file()) == ["1.0.0", "run.json"]


NAMES = ("a", "b.json", "ä ö%20")
STEPS = st.tuples(st.sampled_from(["write", "fail", "remove"]), st.sampled_from(NAMES), st.binary(max_size=40))


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, max_size=6))
def test_a_folder_has_what_was_written_last(storage: Storage, steps: list[tuple[str, str, bytes]]) -> None:
    folder, there = storage / uuid.uuid4().hex, dict[str, bytes]()
    for what, name, data in steps:
        if what == "write":
            folder.write(name, data)
            there[name] = data
        elif what == "fail":
            with suppress(ZeroDivisionError), folder.create(name) as file:
                file.write(data)
                raise ZeroDivisionError
        else:
            folder.remove(name)
            there.pop(name, None)
    assert {name: folder.read(name) for name in folder.names()} == there


def renaming() -> ArrowStorage:
    pytest.importorskip("fsspec")
    made = storage_at(f"fsspec+memory://{uuid.uuid4().hex}/run")
    assert isinstance(made, ArrowStorage)
    return made


def test_a_file_whose_writer_died_between_removing_and_renaming_is_read_in_its_new_form() -> None:
    """HDFS moves nothing onto a file."""
    storage = renaming()
    storage.write("run.json", b"old")
    move = storage._system.move

    class Dies:
        def __getattr__(self, name: str) -> Any:
            return getattr(storage._system, name)

        def move(self, *_: str) -> None:
            raise KeyboardInterrupt

    dying = ArrowStorage(Dies(), storage._path, storage.uri)
    with pytest.raises(KeyboardInterrupt):
        dying.write("run.json", b"new")
    assert storage.read("run.json") == b"new"
    storage.tidy()
    assert storage.read("run.json") == b"new"
    storage.write("run.json", b"newer")
    assert (storage.read("run.json"), storage.names(), callable(move)) == (b"newer", ["run.json"], True)


@pytest.mark.parametrize(
    ("given", "uri"),
    [
        (lambda path: path, lambda path: path.as_uri()),
        (str, lambda path: path.as_uri()),
        (lambda path: path.as_uri(), lambda path: path.as_uri()),
    ],
)
def test_a_plain_path_is_a_file(
    given: Callable[[Path], Path | str], uri: Callable[[Path], str], tmp_path: Path
) -> None:
    made = storage_at(given(tmp_path / "my run"))
    assert made == LocalStorage(tmp_path / "my run")
    assert (made.uri, str(made / "state")) == (uri(tmp_path / "my run"), str(tmp_path / "my run" / "state"))


def test_a_path_that_is_not_absolute_is_of_the_folder_that_one_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert storage_at("out/run").uri == (tmp_path / "out" / "run").as_uri()


def test_hadoops_name_of_s3_is_kept_and_no_secret_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S3_SECRET", "sea/gate")
    storage = storage_at("s3a://ann:${env:S3_SECRET}@bucket/a/run?region=eu-west-1&endpoint_override=localhost:9")
    assert (storage.uri, str(storage / "state")) == ("s3a://bucket/a/run", "s3a://bucket/a/run/state")


@pytest.mark.parametrize("uri", ["ftps://ann:sea@host/run", "s3://"])
def test_a_uri_that_cannot_be_used_is_refused(uri: str) -> None:
    with pytest.raises(InputError, match=r"checkpoints '.*': (cannot be used; |must name a folder)") as raised:
        storage_at(uri)
    assert "sea" not in str(raised.value)


def test_hdfs_without_a_library_says_what_brings_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.common.storage.find_spec", lambda _: None)
    with pytest.raises(
        InputError, match=r"'hdfs://host/run': cannot be used; Unable to load lib.*pip install 'penstock\[hdfs\]'"
    ):
        storage_at("hdfs://host/run")
