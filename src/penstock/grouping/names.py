"""The groupings by name."""

GROUPINGS = ("shuffle", "fields", "load_balancing", "online_shuffle")
SIMULATED_ONLY = ("least_work",)  # knows the true times, which no sender can
