import pytest

from penstock.common.named import Named
from penstock.errors import InputError


@pytest.fixture
def shapes():
    named = Named("shape")
    named.register("box", lambda side=1, filled=False, name="": (side, filled, name), first="side")
    named.register("dot", lambda: "dot")
    return named


@pytest.mark.parametrize(
    ("spec", "made"),
    [
        ("box", (1, False, "")),
        ("box:3", (3, False, "")),
        ("box:2.5,filled", (2.5, True, "")),
        ("box:side=4,filled=false,name=x", (4, False, "x")),
        ("dot", "dot"),
    ],
)
def test_text_becomes_a_thing(shapes, spec, made):
    assert shapes.make(spec) == made


def test_keywords_win(shapes):
    assert shapes.make("box:3", side=7) == (7, False, "")


@pytest.mark.parametrize(
    ("spec", "made"),
    [
        ("box", (5, False, "")),
        ("box:filled=true", (5, True, "")),
        ("box:3", (3, False, "")),
        ("box:3,filled", (3, True, "")),
        ("box:side=4", (4, False, "")),
        ("box:name=side", (5, False, "side")),
        ("dot", "dot"),
    ],
)
def test_defaults_lose_to_what_the_text_says(shapes, spec, made):
    assert shapes.make(spec, {"side": 5}) == made


def test_defaults_lose_to_keywords_too_and_those_that_fit_nothing_are_left_aside(shapes):
    assert shapes.make("box", {"side": 5, "colour": "red"}, side=7) == (7, False, "")


def test_names_and_options_can_be_listed(shapes):
    assert shapes.names == ("box", "dot")
    assert shapes.options("box") == ("side", "filled", "name")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("ball", "shape: no such name 'ball'; known: box, dot"),
        ("box:edge=1", "shape 'box': no such option 'edge'; known: side, filled, name"),
        ("dot:big", "shape 'dot': no such option 'big'; known: none"),
    ],
)
def test_what_is_wrong_is_said_with_what_would_be_right(shapes, spec, message):
    with pytest.raises(InputError, match=message):
        shapes.make(spec)
