"""How batches are numbered: those of shift n from n · 10⁹ on, so that batches of all shifts are in order."""

from __future__ import annotations

BATCHES_OF_A_SHIFT = 10**9

Slot = tuple[str, int]  # of a source


def first_batch(shift: int) -> int:
    """The number of a shift's first batch.

    >>> first_batch(2), shift_of(2_000_000_005)
    (2000000000, 2)
    """
    return shift * BATCHES_OF_A_SHIFT


def shift_of(batch: int) -> int:
    """Whose batch it is."""
    return batch // BATCHES_OF_A_SHIFT
