"""The simulated plant: a topology at work on its replicas, moved on in time."""
