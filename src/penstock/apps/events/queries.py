"""DNS queries: real ones of a contest network where the file is present, otherwise made ones with the same fields."""

from __future__ import annotations

import csv
import io
import string
from collections.abc import Mapping
from pathlib import Path
from random import Random

from penstock.apps.app import Payload, PayloadOptions
from penstock.apps.events.draw import weighted, zipf_ranks
from penstock.errors import InputError
from penstock.workload.data import find_file, read_bytes

FILE = "dns_queries_wrccdc_2018.csv"
_TEXTS = ("client", "server", "proto", "query", "qtype", "rcode")
_HOSTS = ("www", "mail", "api", "cdn", "login", "img", "news", "update", "docs", "static")
_DOMAINS = (
    *("example.com", "example.org", "example.net", "river.test", "dam.test", "turbine.test"),
    *("shop.example", "mail.example", "school.example", "ubuntu.example", "weather.example", "maps.example"),
)
_KINDS = {"host": 84.0, "reverse": 4.0, "service": 3.0, "wildcard": 3.0, "random": 4.0, "tunnel": 2.0}


def queries(options: PayloadOptions) -> list[Payload]:
    """The real queries if the folder has them, otherwise made ones."""
    file = find_file(options.folder, FILE)
    if file is not None:
        return read_queries(file)
    random = Random(options.seed)
    popular = zipf_ranks(random, len(_DOMAINS), 1.0 if options.skew is None else options.skew, options.count)
    return [_made(random, number, _DOMAINS[rank]) for number, rank in enumerate(popular)]


def read_queries(file: Path) -> list[Payload]:
    """Queries from a CSV file; a query without an answer has `answered` false and a round trip of 0."""
    rows: list[Payload] = []
    reader = csv.DictReader(io.StringIO(read_bytes(file).decode(), newline=""))
    for row in reader:
        try:
            rows.append(_read(row))
        except (KeyError, TypeError, ValueError) as error:
            place = f"{file.name}:{reader.line_num}"
            raise InputError(f"queries ({place}): each line must be a DNS query; wrong or missing: {error}") from None
    if not rows:
        raise InputError(f"queries ({file.name}): the file must hold at least one query; got none")
    return rows


def _read(row: Mapping[str, str]) -> Payload:
    texts: Payload = {name: row[name] for name in _TEXTS}
    rtt = row["rtt_s"]
    return {
        "time_s": float(row["time_s"]),
        **texts,
        "answered": bool(rtt),
        "rtt_s": float(rtt or 0.0),
        "n_answers": int(row["n_answers"]),
    }


def _made(random: Random, number: int, domain: str) -> Payload:
    query, qtype, rcode = _question(random, weighted(random, _KINDS), domain)
    answered = rcode != "-"
    return {
        "time_s": round(number * 0.025, 6),
        "client": f"10.47.{random.randint(1, 8)}.{random.randint(100, 160)}",
        "server": "10.0.0.100",
        "proto": "udp",
        "query": query,
        "qtype": qtype,
        "rcode": rcode,
        "answered": answered,
        "rtt_s": round(random.expovariate(50.0), 6) if answered else 0.0,
        "n_answers": random.randint(1, 4) if rcode == "NOERROR" else 0,
    }


def _question(random: Random, kind: str, domain: str) -> tuple[str, str, str]:
    """Name, type and response code of a query of that kind."""
    if kind == "reverse":
        return f"{random.randint(1, 254)}.0.16.172.in-addr.arpa", "PTR", random.choice(("NOERROR", "NXDOMAIN"))
    if kind == "service":
        return f"_{random.choice(('ipp', 'ldap', 'ssh'))}._tcp.local", "SRV", "-"
    if kind == "wildcard":
        return "*", "NBSTAT", "-"
    if kind == "random":
        name = "".join(random.choices(string.ascii_lowercase + string.digits, k=random.randint(14, 22)))
        return f"{name}.{random.choice(('com', 'net', 'info'))}", "A", "NXDOMAIN"
    if kind == "tunnel":
        labels = ("".join(random.choices("abcdef0123456789", k=48)) for _ in range(2))
        return f"{'.'.join(labels)}.{domain}", "TXT", "NOERROR"
    qtype = random.choice(("A", "A", "A", "AAAA"))
    return f"{random.choice(_HOSTS)}.{domain}", qtype, "NXDOMAIN" if random.random() < 0.03 else "NOERROR"
