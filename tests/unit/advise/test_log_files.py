"""Event logs as files: compressed by Spark's own codecs, rolled, and growing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    if codec != "zstd":  # whose one frame may be told only at its end
        assert len(found) > len(lines) / 2


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
