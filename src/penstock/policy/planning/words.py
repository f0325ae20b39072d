"""What a timetable does that the need alone does not explain, in words."""

from __future__ import annotations

from penstock.policy.planning.needs import Need
from penstock.policy.planning.planners import Counts


def reason_of(need: Need, timetable: Counts, plain: Counts, start: int, saved: float) -> str:
    """Why the timetable begins as it does, and where it leaves the `plain` one, with what that saves.

    `plain` is what the planner improves on: SPEA's timetable, or the need itself.
    """
    wanted = need.replicas[1:]
    parts = [str(need)]
    if timetable[0] != wanted[0]:
        parts.append(_move(timetable, wanted, 0, start))
    later = next((t for t in range(1, len(plain)) if timetable[t] != plain[t]), 0)
    if later and timetable[0] == plain[0]:
        parts.append(f"in {later + 1} intervals {_move(timetable, plain, later, int(timetable[later - 1]))}")
    if saved > 0 and len(parts) > 1:
        parts[-1] += f" (saves {_amount(saved)})"
    return "; ".join(parts)


def _move(timetable: Counts, wanted: Counts, place: int, before: int) -> str:
    count, need = int(timetable[place]), int(wanted[place])
    if count < need:
        return f"takes {count}, {need - count} short"
    if count > before:
        return f"takes {count} early"
    if (wanted[place:] >= count).any():
        return f"keeps {count} through the dip"
    return f"keeps {count} for longer"


def _amount(saved: float) -> str:
    return f"{saved:,.0f}" if saved >= 10 else f"{saved:.2g}"
