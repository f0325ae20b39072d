"""Values as files: what comes back, and what does not."""

import msgspec
import pytest

from penstock.common.sealed_json import OtherVersion, from_json, to_json


class Point(msgspec.Struct):
    x: int
    version: int = 2


def test_a_value_comes_back_from_text_that_a_person_can_read():
    written = to_json(Point(7))
    assert written.startswith(b'{\n  "x": 7,\n  "version": 2\n}\n')
    assert from_json(written, Point, version=2) == Point(7)


@pytest.mark.parametrize(("content", "version"), [(b'{"x": 7}', 1), (b'{"version": 3, "y": 1}', 3)])
def test_another_version_is_told_before_anything_else_is_read(content: bytes, version: int):
    with pytest.raises(OtherVersion) as caught:
        from_json(content, Point, version=2)
    assert caught.value.version == version


def test_a_changed_file_is_no_value():
    with pytest.raises(ValueError, match="its checksum should be"):
        from_json(to_json(Point(7)).replace(b"7", b"8"), Point, version=2)
