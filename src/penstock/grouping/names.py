"""The groupings by name."""

GROUPINGS = ("shuffle", "fields", "load_balancing")
