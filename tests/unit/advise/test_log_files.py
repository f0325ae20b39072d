"""Event logs as files: compressed by Spark's own codecs, rolled, and growing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.advise import log_files as log_files_module
from penstock.advise.log_files import codec_of, log_files, log_lines, unpacked_lzf
from penstock.errors import InputError

DATA = Path(__file__).parent / "data"
PLAIN = DATA / "app-4.3"


@pytest.mark.parametrize("codec", ["zstd", "lz4", "snappy", "lzf"])
def test_what_spark_has_compressed_is_read_as_it_was(codec: str) -> None:
    packed = DATA / f"app-4.3.{codec}"
    assert codec_of(packed) == codec
    assert list(log_lines(packed)) == PLAIN.read_bytes().splitlines()


@pytest.mark.parametrize("codec", ["plain", "zstd", "lz4", "snappy", "lzf"])
def test_a_log_that_grows_is_read_as_far_as_it_goes(codec: str, tmp_path: Path) -> None:
    data = (PLAIN if codec == "plain" else DATA / f"app-4.3.{codec}").read_bytes()
    growing = tmp_path / ("app-4.3.inprogress" if codec == "plain" else f"app-4.3.{codec}.inprogress")
    growing.write_bytes(data[: len(data) * 3 // 4])
    found, lines = list(log_lines(growing)), PLAIN.read_bytes().splitlines()
    assert found == lines[: len(found)]
    if codec != "zstd":  # this one has a single block, which is told at its end
        assert len(found) > len(lines) / 2


LINES = PLAIN.read_bytes().splitlines()


def frames(lines_each: int) -> list[bytes]:
    """The log in frames of zstd, as a writer makes them that ends one at every flush."""
    parts = [LINES[at : at + lines_each] for at in range(0, len(LINES), lines_each)]
    return [pa.compress(b"".join(line + b"\n" for line in part), "zstd", asbytes=True) for part in parts]


def flushed(lines_each: int) -> tuple[bytes, int]:
    """The log in one frame of zstd with a block at every flush, and where the last flush was."""
    sink, flushed_at = pa.BufferOutputStream(), 0
    packed = pa.CompressedOutputStream(sink, "zstd")
    for number, line in enumerate(LINES, 1):
        packed.write(line + b"\n")
        if number % lines_each == 0:
            packed.flush()
            flushed_at = sink.tell()
    packed.close()
    return sink.getvalue().to_pybytes(), flushed_at


def test_many_frames_of_zstd_are_one_log(tmp_path: Path) -> None:
    packed = tmp_path / "app-4.3.zstd"
    packed.write_bytes(b"".join(frames(5)))
    assert list(log_lines(packed)) == LINES


@pytest.mark.parametrize("of_last", [0, 1, 30, -1])
def test_all_frames_of_zstd_that_are_whole_are_read_while_it_grows(of_last: int, tmp_path: Path) -> None:
    """Nothing was read: what had been unpacked was lost where the last frame breaks off."""
    growing, made = tmp_path / "app-4.3.zstd.inprogress", frames(5)
    growing.write_bytes(b"".join(made[:40]) + made[40][:of_last])
    assert list(log_lines(growing)) == LINES[:200]


def test_all_blocks_of_an_open_frame_of_zstd_are_read_while_it_grows(tmp_path: Path) -> None:
    growing, (data, flushed_at) = tmp_path / "app-4.3.zstd.inprogress", flushed(10)
    assert len(LINES) % 10 == 3
    growing.write_bytes(data[:flushed_at])
    assert list(log_lines(growing)) == LINES[:-3]
    growing.write_bytes(data[: flushed_at + 5])
    assert list(log_lines(growing)) == LINES[:-3]
    growing.write_bytes(data)
    assert list(log_lines(growing)) == LINES


def test_much_of_a_log_that_grows_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_files_module, "CHUNK_BYTES", 1000)
    growing, made = tmp_path / "app-4.3.zstd.inprogress", frames(5)
    growing.write_bytes(b"".join(made)[:-7])
    assert list(log_lines(growing)) == LINES[:-3]


def rolled(folder: Path, *, growing: bool) -> None:
    """The log in three files as Spark rolls it, compressed; the names of its files are Spark's."""
    folder.mkdir()
    (folder / f"appstatus_app-1{'.inprogress' if growing else ''}").touch()
    parts = [LINES[:100], LINES[100:250], LINES[250:]]
    for number, part in enumerate(parts, 1):
        text = b"".join(line + b"\n" for line in part)
        (folder / f"events_{number}_app-1.zstd").write_bytes(pa.compress(text, "zstd", asbytes=True))


def test_a_rolled_and_compressed_log_is_read_in_order(tmp_path: Path) -> None:
    folder = tmp_path / "eventlog_v2_app-1"
    rolled(folder, growing=False)
    assert list(log_lines(folder)) == LINES
    compact = b"".join(line + b"\n" for line in LINES[::2][:125])
    (folder / "events_2_app-1.zstd.compact").write_bytes(pa.compress(compact, "zstd", asbytes=True))
    assert list(log_lines(folder)) == LINES[::2][:125] + LINES[250:]


def test_what_is_being_compacted_does_not_count_yet(tmp_path: Path) -> None:
    """A half-written file was taken for the log up to its number."""
    folder = tmp_path / "eventlog_v2_app-1"
    rolled(folder, growing=True)
    (folder / "events_2_app-1.zstd.compact.inprogress").write_bytes(frames(5)[0][:9])
    assert list(log_lines(folder)) == LINES


def test_only_the_last_file_of_a_rolled_log_may_break_off(tmp_path: Path) -> None:
    """Others were cut short in silence, too."""
    folder = tmp_path / "eventlog_v2_app-1"
    rolled(folder, growing=True)
    last = folder / "events_3_app-1.zstd"
    last.write_bytes(frames(5)[50] + frames(5)[51][:9])
    assert list(log_lines(folder)) == LINES[:255]
    (folder / "events_1_app-1.zstd").write_bytes(frames(5)[0] + b"no frame")
    with pytest.raises(InputError, match=r"events_1_app-1\.zstd': cannot be decompressed"):
        list(log_lines(folder))
    rolled(tmp_path / "eventlog_v2_app-2", growing=False)
    ended = tmp_path / "eventlog_v2_app-2" / "events_3_app-1.zstd"
    ended.write_bytes(ended.read_bytes()[:-9])
    with pytest.raises(InputError, match="cannot be decompressed"):
        list(log_lines(ended.parent))


@pytest.mark.parametrize("codec", ["zstd", "lz4", "snappy", "lzf"])
def test_a_log_that_has_ended_must_be_whole(codec: str, tmp_path: Path) -> None:
    broken = tmp_path / f"app-4.3.{codec}"
    broken.write_bytes(b"no such thing as this" * 10)
    with pytest.raises(InputError, match=r"^event log '.*': cannot be decompressed; "):
        list(log_lines(broken))


def test_a_rolled_log_is_read_in_order_and_from_where_it_was_compacted(tmp_path: Path) -> None:
    folder = tmp_path / "eventlog_v2_app-1"
    folder.mkdir()
    (folder / "appstatus_app-1").touch()
    for number in (1, 2, 3, 10):
        (folder / f"events_{number}_app-1").write_text(f'{{"Event":"{number}"}}\n')
    assert [one.name for one in log_files(folder)] == [f"events_{n}_app-1" for n in (1, 2, 3, 10)]
    (folder / "events_2_app-1.compact").write_text('{"Event":"1 and 2"}\n')
    assert list(log_lines(folder)) == [b'{"Event":"1 and 2"}', b'{"Event":"3"}', b'{"Event":"10"}']


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must be a file, or a folder with files events_1_…; has none$"):
        log_files(tmp_path)


def packed_lzf(data: bytes) -> bytes:
    """Runs of plain bytes only: what every packer may do."""
    parts = [data[at : at + 32] for at in range(0, len(data), 32)]
    return b"".join(bytes([len(one) - 1]) + one for one in parts)


@given(st.binary(max_size=300))
def test_plain_runs_of_lzf(data: bytes) -> None:
    assert unpacked_lzf(packed_lzf(data), len(data)) == data


def test_copies_of_lzf_may_overlap_with_what_they_make() -> None:
    assert unpacked_lzf(bytes([0]) + b"a" + bytes([0xE0, 5, 0]), 15) == b"a" * 15
    with pytest.raises(ValueError, match="must have 9 bytes; got 15"):
        unpacked_lzf(bytes([0]) + b"a" + bytes([0xE0, 5, 0]), 9)
