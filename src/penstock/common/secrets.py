"""Secrets: where they are read instead of a command line or a program, and how they are kept out of messages."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from penstock.errors import InputError

HIDDEN = "***"
_REFERENCE = re.compile(r"\$\{(env|file):([^}]+)\}")
_TELLING = re.compile(r"pass(word|wd|phrase)|secret|token|credential|access[._]?key|api[._]?key", re.IGNORECASE)
_LOGIN = re.compile(r"(^|://)([^/?#@:]*):(?!//).*@", re.DOTALL)  # up to the last @: a password may have one
_QUERY = re.compile(r"([?&;])([^=&;?#]+)=([^&#]*)")


def resolve(thing: str, text: str) -> str:
    """The text with what `${env:NAME}` and `${file:/path}` in it stand for; called where it is used.

    >>> os.environ["DB_PASSWORD"] = "sea"
    >>> resolve("table 'events'", "${env:DB_PASSWORD}")
    'sea'
    """
    return _REFERENCE.sub(lambda found: _read(thing, found[1], found[2]), text)


def resolve_url(thing: str, url: str) -> str:
    """The same in a URL: what is special in a secret is escaped.

    >>> os.environ["RABBIT"] = "a@b/c"
    >>> resolve_url("queue 'hot'", "amqp://ann:${env:RABBIT}@host/")
    'amqp://ann:a%40b%2Fc@host/'
    """
    return _REFERENCE.sub(lambda found: quote(_read(thing, found[1], found[2]), safe=""), url)


def _read(thing: str, kind: str, place: str) -> str:
    try:
        return os.environ[place] if kind == "env" else Path(place).read_text().rstrip("\r\n")
    except KeyError:
        raise InputError(f"{thing}: the environment has no variable {place!r}") from None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InputError(f"{thing}: the file {place!r} cannot be read: {why}") from None


def is_telling(name: str) -> bool:
    """Whether a setting of that name has a secret.

    >>> is_telling("spark.authenticate.secret"), is_telling("sslpassword"), is_telling("spark.master")
    (True, True, False)
    """
    return _TELLING.search(name) is not None


def masked_url(url: str) -> str:
    """A URL, right or wrong, as it may be shown: without a password before the host or in its query.

    >>> masked_url("postgres://ann:se@a@host/db?sslpassword=x&sslmode=require")
    'postgres://ann:***@host/db?sslpassword=***&sslmode=require'
    """
    shown = _LOGIN.sub(rf"\1\2:{HIDDEN}@", url)
    return _QUERY.sub(lambda found: f"{found[1]}{found[2]}={HIDDEN if is_telling(found[2]) else found[3]}", shown)


def without(text: str, secrets: Iterable[object]) -> str:
    """The text with these left out, whoever wrote them there."""
    for secret in secrets:
        if secret:
            text = text.replace(str(secret), HIDDEN)
    return text
