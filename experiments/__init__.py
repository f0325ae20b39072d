"""The papers' evaluation, played in the simulator: `python -m experiments`."""
