"""Things that a user picks by a short text: `psps`, `static:4`, `drift:window=5`, `psps:predecessor_backlog`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from penstock.common.names import one_of
from penstock.errors import InputError

Thing = TypeVar("Thing")


class Named(Generic[Thing]):
    """Makes one kind of thing by name and options; a wrong name or option is an InputError that lists the right ones.

    After the name and a colon come options, separated by commas: `key=value`, a bare key (that is, true), or first
    the value of the option that `register` named as `first`.

    >>> colours = Named("colour")
    >>> colours.register("grey", lambda level=50: f"grey at {level} %", first="level")
    >>> colours.make("grey"), colours.make("grey:20"), colours.make("grey", level=70)
    ('grey at 50 %', 'grey at 20 %', 'grey at 70 %')
    >>> colours.make("grey:tone=3")
    Traceback (most recent call last):
    penstock.errors.InputError: colour 'grey': no such option 'tone'; known: level
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._makers: dict[str, tuple[Callable[..., Thing], str | None]] = {}
        self._aliases: set[str] = set()

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in alphabetical order."""
        return tuple(sorted(self._makers))

    def register(self, name: str, make: Callable[..., Thing], *, first: str | None = None) -> None:
        """Add a name; `make` takes the options as keywords."""
        self._makers[name] = (make, first)

    def alias(self, name: str, of: str) -> None:
        """Another name for the same."""
        self._makers[name] = self._maker(of)
        self._aliases.add(name)

    @property
    def distinct(self) -> tuple[str, ...]:
        """All names but the aliases."""
        return tuple(name for name in self.names if name not in self._aliases)

    def options(self, name: str) -> tuple[str, ...]:
        """The options of a name."""
        return tuple(inspect.signature(self._maker(name)[0]).parameters)

    def specs(self, text: str) -> list[str]:
        """Several descriptions, separated by commas as their options are; each once.

        >>> colours = Named("colour")
        >>> colours.register("grey", lambda level=50, tone=0: level)
        >>> colours.specs("grey:level=20,tone=3, grey")
        ['grey:level=20,tone=3', 'grey']
        """
        found: list[str] = []
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, colon, _ = found[-1].partition(":") if found else ("", "", "")
            if colon and name in self.names and part.partition("=")[0] in self.options(name):
                found[-1] += f",{part}"
            else:
                found.append(part)
        if not found:
            raise InputError(f"{self.kind}: must be names separated by commas; got {text!r}")
        return list(dict.fromkeys(found))

    def make(self, spec: str, defaults: Mapping[str, object] | None = None, /, **options: object) -> Thing:
        """Make the thing that the text describes; options may also be given as keywords, which win.

        `defaults` are for what the text leaves open, by position and by name; those it has no option for do not count.

        >>> colours = Named("colour")
        >>> colours.register("grey", lambda level=50: f"grey at {level} %", first="level")
        >>> colours.make("grey", {"level": 30, "tone": 3}), colours.make("grey:20", {"level": 30})
        ('grey at 30 %', 'grey at 20 %')
        """
        name, _, rest = spec.partition(":")
        make, first = self._maker(name)
        known = self.options(name)
        fitting = {option: value for option, value in (defaults or {}).items() if option in known}
        given = {**fitting, **_parse(rest, first), **options}
        for option in given:
            if option not in known:
                raise InputError(
                    f"{self.kind} {name!r}: no such option {option!r}; known: {', '.join(known) or 'none'}"
                )
        return make(**given)

    def _maker(self, name: str) -> tuple[Callable[..., Thing], str | None]:
        return self._makers[one_of(self.kind, name, self.names)]


def _parse(rest: str, first: str | None) -> dict[str, object]:
    options: dict[str, object] = {}
    for place, part in enumerate(rest.split(",") if rest else ()):
        key, equals, value = part.partition("=")
        if equals:
            options[key] = _value(value)
        elif place == 0 and first:
            options[first] = _value(key)
        else:
            options[key] = True
    return options


def _value(text: str) -> object:
    """Text as the number or truth value that it looks like."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
