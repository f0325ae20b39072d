"""Secrets are read where they are used, and nothing shows them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.secrets import masked_url, resolve, resolve_url
from penstock.errors import InputError

WORDS = st.text(st.characters(codec="ascii", exclude_characters="#&\x00\r\n"), min_size=4, max_size=12)


@given(WORDS.map(lambda word: f"Q{word}Q"), st.sampled_from(["postgres://", "amqp://", "", "x+y://"]))
def test_whatever_a_password_has_in_it_it_is_not_shown(password: str, scheme: str) -> None:
    assert password not in masked_url(f"{scheme}ann:{password}@host:1/db")
    assert password not in masked_url(f"{scheme}host/db?user=ann&password={password}&x=1")


@pytest.mark.parametrize("url", ["sqlite:////tmp/a.db", "amqp://ann@host/", "postgresql://h:1/db?sslmode=require", "x"])
def test_what_has_no_secret_stays_as_it_is(url: str) -> None:
    assert masked_url(url) == url


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"store: the environment has no variable 'NOT_THERE'"):
        resolve("store", "${env:NOT_THERE}")
    with pytest.raises(InputError, match=r"store: the file '.*none' cannot be read: No such file or directory"):
        resolve_url("store", f"x://a:${{file:{tmp_path}/none}}@h/")
    (tmp_path / "odd").write_bytes(b"\xff")
    with pytest.raises(InputError, match=r"cannot be read: it is not text"):
        resolve("store", f"${{file:{tmp_path}/odd}}")
