"""The simulator's inner loops, compiled by numba: events in at an operator, events out, and what becomes of them."""
