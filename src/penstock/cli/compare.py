"""`penstock compare`: several policies on the same trace."""

from __future__ import annotations

from penstock.cli.simulate import Chosen, run_arena, with_scenario


@with_scenario("policies", "all", "all, or names separated by commas.")
def compare(chosen: Chosen) -> None:
    """Compare policies on the same trace; the cheapest that is on time comes first."""
    run_arena(chosen, chosen["policies"])
