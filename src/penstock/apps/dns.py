"""The DNS application of PSPS: four operators that analyse and classify DNS queries.

queries → parse → features → classify → store
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any

from penstock.apps.options import AppOptions, Tuning
from penstock.topology import Topology

SERVICE_MS = {"parse": 10.0, "features": 15.0, "classify": 10.0, "store": 10.0}
POOL = 4
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NAME_LIMIT = 253
_SECOND_LEVEL = frozenset(("co", "com", "ac", "gov", "org", "net", "edu"))
_LOCAL = ("local", "localdomain", "arpa")
_TUNNEL_TYPES = ("TXT", "NULL", "CNAME", "MX")


def build(options: AppOptions) -> Topology:
    """The topology, with the caller's options."""
    tuning = Tuning("dns", options, SERVICE_MS, POOL)
    topology = Topology("dns")
    queries = topology.source("queries")
    parsed = topology.operator(
        "parse", tuning.run("parse", parse), inputs=queries, selectivity=1.0, **tuning.declared("parse")
    )
    featured = topology.operator(
        "features", tuning.run("features", features), inputs=parsed, selectivity=1.0, **tuning.declared("features")
    )
    classified = topology.operator(
        "classify", tuning.run("classify", classify), inputs=featured, selectivity=1.0, **tuning.declared("classify")
    )
    topology.operator("store", tuning.sink("store"), inputs=classified, selectivity=0.0, **tuning.declared("store"))
    return topology


def parse(query: dict[str, Any]) -> dict[str, Any]:
    """The name in lower case, whether it keeps the rules of RFC 1035, and its registered domain."""
    name = query["query"].rstrip(".").lower()
    labels = name.split(".")
    valid = len(name) <= _NAME_LIMIT and all(_LABEL.fullmatch(label) for label in labels)
    kept = {field: query[field] for field in ("time_s", "client", "qtype", "rcode", "answered")}
    return {**kept, "name": name, "valid": valid, "domain": registered_domain(labels)}


def registered_domain(labels: list[str]) -> str:
    """The last two labels, or three where the second is a registry's (`co.uk`).

    >>> registered_domain(["www", "river", "co", "uk"]), registered_domain(["www", "example", "com"])
    ('river.co.uk', 'example.com')
    """
    registry = len(labels) > 2 and len(labels[-1]) == 2 and labels[-2] in _SECOND_LEVEL
    return ".".join(labels[-3:] if registry else labels[-2:])


def features(query: dict[str, Any]) -> dict[str, Any]:
    """Length, depth, and the entropy, digits and vowels of the longest label below the top one."""
    labels = query["name"].split(".")
    longest = max(labels[:-1] or labels, key=len)
    size = max(len(longest), 1)
    return {
        **query,
        "length": len(query["name"]),
        "depth": len(labels),
        "longest": len(longest),
        "entropy": round(entropy(longest), 4),
        "digits": round(sum(letter.isdigit() for letter in longest) / size, 4),
        "vowels": round(sum(letter in "aeiou" for letter in longest) / size, 4),
    }


def entropy(text: str) -> float:
    """Shannon's entropy in bits a letter: −Σ p · log₂ p.

    >>> entropy("aaaa"), entropy("abab"), entropy("abcd")
    (0.0, 1.0, 2.0)
    """
    shares = [count / len(text) for count in Counter(text).values()]
    return sum(-share * math.log2(share) for share in shares)


def classify(query: dict[str, Any]) -> dict[str, Any]:
    """malformed, local, tunnel, dga (made by an algorithm), failed or ordinary."""
    return {**query, "class": _class(query)}


def _class(query: dict[str, Any]) -> str:
    if not query["valid"]:
        return "malformed"
    if query["qtype"] == "PTR" or query["name"].rsplit(".", 1)[-1] in _LOCAL:
        return "local"
    if query["longest"] >= 30 and query["entropy"] >= 3.0 and query["qtype"] in _TUNNEL_TYPES:
        return "tunnel"
    odd = query["longest"] >= 12 and query["entropy"] >= 3.2 and query["vowels"] < 0.3
    if odd and query["rcode"] == "NXDOMAIN":
        return "dga"
    return "ordinary" if query["rcode"] == "NOERROR" else "failed"
