"""The groupings by name."""

GROUPINGS = ("shuffle", "fields", "load_balancing", "online_shuffle", "pull")
LATE = ("pull",)  # an event's replica is not chosen before it has room
WITH_STATE = "key_groups"  # of operators that keep state, and only theirs
SIMULATED_ONLY = ("least_work",)  # knows the true times, which no sender can
