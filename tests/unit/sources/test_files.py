"""A file of events: JSON lines or CSV, read by number, with every bad line named."""

from __future__ import annotations

import gzip
import json
import math
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.sources import FileSource
from penstock.sources import files as module


@pytest.fixture
def written(tmp_path: Path) -> Any:
    """`written("events.csv", text)`: a file with that text; its path."""

    def made(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return made


@pytest.mark.parametrize("name", ["events.jsonl", "events.ndjson"])
def test_json_lines(written: Any, name: str) -> None:
    source = FileSource(written(name, '{"text": "storm", "n": 1}\n{"text": "über", "tags": ["a"]}\n'))
    assert source.total == 2
    assert source.read(range(2)) == [{"text": "storm", "n": 1}, {"text": "über", "tags": ["a"]}]


@pytest.mark.parametrize("last", ["", "\n", "\r\n"])
def test_csv_with_quotes_and_any_last_line(written: Any, last: str) -> None:
    source = FileSource(written("events.csv", f'text,place\n"storm, rain",Lyon\nsun,"""Paris"""{last}'))
    assert source.total == 2
    assert source.read(range(2)) == [{"text": "storm, rain", "place": "Lyon"}, {"text": "sun", "place": '"Paris"'}]


def test_a_byte_order_mark_is_no_part_of_the_first_field(written: Any) -> None:
    """Spreadsheets write one; the field used to be called '\\ufefftext'."""
    source = FileSource(written("events.csv", b"\xef\xbb\xbftext,n\nstorm,1\n"))
    assert source.read(range(1)) == [{"text": "storm", "n": "1"}]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.jsonl", '{"n": 1}\nstorm\n', "event 1: must be JSON: "),
        ("a.jsonl", '{"n": 1}\n{"n": 2}\n[3]\n', "event 2: must be a JSON object; got list"),
        ("a.jsonl", '{"n": 1}\n\n', "event 1: must be JSON: "),
        ("a.jsonl", b'{"n": 1}\n{"n": "\xff"}\n', "event 1: must be JSON: "),
        ("a.csv", "a,b\n1,2\n1,2,3\n", "event 1: must have 2 fields on one line; got 3"),
        ("a.csv", 'a,b\n"1\n2",3\n', "event 0: must have 2 fields on one line; got 1"),
        ("a.csv", "a,b\n1,2\n\n", "event 1: must have 2 fields on one line; got 0"),
        ("a.csv", b"a,b\n1,2\n1,\xff\n", "event 1: must be CSV: 'utf-8' codec can't decode"),
        ("a.csv", "a,b\n1,2\n1\r1,2\n", "event 1: must be CSV: new-line character seen"),
        ("a.csv", b"a,\xff\n1,2\n", "line 1: must be CSV: 'utf-8' codec can't decode"),
        ("a.csv", "\n1,2\n", ": line 1 must name the fields; got an empty line"),
    ],
    ids=[
        "word",
        "list",
        "blank",
        "latin",
        "long",
        "newline",
        "blank-csv",
        "latin-csv",
        "return",
        "header",
        "no-header",
    ],
)
def test_a_bad_line_is_named_by_its_event(written: Any, name: str, content: str | bytes, told: str) -> None:
    """Text that is not UTF-8 and returns inside a line used to come out as Python's own errors."""
    path = written(name, content)
    with pytest.raises(InputError) as caught:
        FileSource(path)
    assert str(caught.value).startswith(f"file source {str(path)!r}")
    assert told in str(caught.value)


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_a_compressed_file_is_read_by_number_where_it_runs(kind: str, written: Any) -> None:
    lines = [f'{{"n": "{n}"}}' if kind == "jsonl" else str(n) for n in range(3000)]
    text = "\n".join((["n"] if kind == "csv" else []) + lines) + "\n"
    plain = FileSource(written(f"a.{kind}", text))
    packed = FileSource(written(f"a.{kind}.gz", gzip.compress(text.encode())))
    assert packed.total == plain.total == 3000
    shipped = pickle.dumps(packed)
    assert len(shipped) < 1000, "the content stays where it is"
    numbers = range(2, 2900, 7)
    assert pickle.loads(shipped).read(numbers) == packed.read(numbers) == plain.read(numbers)


def test_a_compressed_file_that_is_not_whole(written: Any) -> None:
    path = written("a.jsonl.gz", gzip.compress(b'{"n": 1}\n')[:-4])
    with pytest.raises(InputError, match=r"file source '.*a.jsonl.gz': must be a whole gzip file; "):
        FileSource(path)


@pytest.mark.parametrize(("name", "content"), [("a.jsonl", ""), ("a.csv", "a,b\n")])
def test_a_file_without_events(written: Any, name: str, content: str) -> None:
    path = written(name, content)
    with pytest.raises(InputError) as caught:
        FileSource(path)
    assert str(caught.value) == f"file source {str(path)!r}: holds no events"


def test_an_empty_csv_has_no_header(written: Any) -> None:
    with pytest.raises(InputError, match="line 1 must name the fields"):
        FileSource(written("a.csv", ""))


def test_a_missing_file_and_a_file_of_another_kind(written: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError) as missing:
        FileSource(tmp_path / "gone.jsonl")
    assert str(missing.value) == f"file source: no file '{tmp_path / 'gone.jsonl'}'"
    path = written("events.xml", "<a/>")
    with pytest.raises(InputError) as other:
        FileSource(path)
    assert str(other.value) == f"file source '{path}': must end in .jsonl, .ndjson or .csv; got '.xml'"


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf])
def test_a_rate_that_is_none(written: Any, rate: float) -> None:
    path = written("a.jsonl", "{}\n")
    with pytest.raises(InputError) as caught:
        FileSource(path, rate=rate)
    assert str(caught.value) == f"file source '{path}': rate must be above 0; got {rate!r}"


def test_without_a_rate_all_is_due_at_once_and_born_when_sent(written: Any) -> None:
    source = FileSource(written("a.jsonl", "{}\n" * 5))
    assert source.due(0.0) == 5
    assert all(math.isnan(time) for time in source.due_times(range(5)))


def test_with_a_rate_events_come_evenly(written: Any) -> None:
    source = FileSource(written("a.jsonl", "{}\n" * 5), rate=2.0)
    assert source.due_times(range(0, 5, 2)) == [0.0, 1.0, 2.0]
    assert [source.due(time) for time in (-0.1, 0.0, 0.4, 0.5, 1.9, 2.0, 99.0)] == [0, 1, 1, 2, 4, 5, 5]


@pytest.fixture(scope="module")
def numbered(tmp_path_factory: pytest.TempPathFactory) -> tuple[FileSource, FileSource, list[int]]:
    """The numbers 0 to 99 as JSON lines and as CSV, with many remembered positions."""
    folder, numbers = tmp_path_factory.mktemp("files"), list(range(100))
    (folder / "a.jsonl").write_text("".join(json.dumps({"n": n}) + "\n" for n in numbers))
    (folder / "a.csv").write_text("n\n" + "".join(f"{n}\n" for n in numbers))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "INDEX_EVERY", 7)
        return FileSource(folder / "a.jsonl"), FileSource(folder / "a.csv"), numbers


@given(start=st.integers(0, 100), length=st.integers(0, 100), step=st.integers(1, 40))
def test_any_range_reads_what_a_slice_would(numbered: Any, start: int, length: int, step: int) -> None:
    json_lines, rows, numbers = numbered
    asked = range(start, min(start + length, 100), step)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "INDEX_EVERY", 7)
        assert [event["n"] for event in json_lines.read(asked)] == numbers[asked.start : asked.stop : step]
        assert [int(event["n"]) for event in rows.read(asked)] == numbers[asked.start : asked.stop : step]


def test_positions_of_a_long_file(written: Any) -> None:
    count = 3 * module.INDEX_EVERY + 10
    source = FileSource(written("a.jsonl", "".join(f'{{"n": {n}}}\n' for n in range(count))))
    for start in (0, module.INDEX_EVERY - 1, module.INDEX_EVERY, 2 * module.INDEX_EVERY + 1, count - 1):
        assert source.read(range(start, start + 1)) == [{"n": start}]
