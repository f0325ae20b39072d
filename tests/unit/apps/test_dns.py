"""The DNS application: what a name looks like, and what is made of it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from penstock.apps.dns import classify, entropy, features, parse, registered_domain


def query(name: str, qtype: str = "A", rcode: str = "NOERROR") -> dict[str, Any]:
    return {"time_s": 0.0, "client": "10.0.0.1", "query": name, "qtype": qtype, "rcode": rcode, "answered": True}


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("www.example.com", True),
        ("WWW.Example.COM.", True),
        ("_ldap._tcp.local", True),
        ("a.b", True),
        ("*", False),
        ("", False),
        ("a..b", False),
        ("-a.com", False),
        ("a-.com", False),
        ("a b.com", False),
        (f"{'a' * 63}.com", True),
        (f"{'a' * 64}.com", False),
        (".".join(["abcdefg"] * 32), False),
    ],
)
def test_names_keep_the_rules(name: str, valid: bool) -> None:
    assert parse(query(name))["valid"] is valid


def test_names_are_told_in_lower_case_without_the_last_dot() -> None:
    parsed = parse(query("WWW.Example.COM."))
    assert (parsed["name"], parsed["domain"]) == ("www.example.com", "example.com")


@pytest.mark.parametrize(
    ("name", "domain"),
    [("www.river.co.uk", "river.co.uk"), ("a.b.example.com", "example.com"), ("local", "local"), ("co.uk", "co.uk")],
)
def test_registered_domain(name: str, domain: str) -> None:
    assert registered_domain(name.split(".")) == domain


def test_entropy_in_bits_a_letter() -> None:
    assert entropy("") == 0.0
    assert entropy("aaaa") == 0.0
    assert entropy("abcdefgh") == 3.0
    assert entropy("aab") == pytest.approx(-(2 / 3) * math.log2(2 / 3) - (1 / 3) * math.log2(1 / 3))


def test_features_are_of_the_longest_label_below_the_top() -> None:
    measured = features(parse(query("ab.a1b2c3.technology")))
    assert (measured["length"], measured["depth"], measured["longest"]) == (20, 3, 6)
    assert (measured["digits"], measured["vowels"]) == (0.5, round(1 / 6, 4))
    assert measured["entropy"] == round(math.log2(6), 4)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (query("www.example.com"), "ordinary"),
        (query("www.example.com", rcode="NXDOMAIN"), "failed"),
        (query("www.example.com", rcode="-"), "failed"),
        (query("xk2q9vz7tq4wm8rb.com", rcode="NXDOMAIN"), "dga"),
        (query("xk2q9vz7tq4wm8rb.com"), "ordinary"),
        (query("hydroelectrical.com", rcode="NXDOMAIN"), "failed"),
        (query(f"{'0123456789abcdef' * 3}.example.com", qtype="TXT"), "tunnel"),
        (query(f"{'0123456789abcdef' * 3}.example.com"), "ordinary"),
        (query("5.0.16.172.in-addr.arpa", qtype="PTR"), "local"),
        (query("_ipp._tcp.local", qtype="SRV", rcode="-"), "local"),
        (query("*", qtype="NBSTAT"), "malformed"),
        (query(""), "malformed"),
    ],
)
def test_classes(asked: dict[str, Any], expected: str) -> None:
    assert classify(features(parse(asked)))["class"] == expected
