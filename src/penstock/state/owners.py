"""Key groups: keys are hashed into a fixed number of groups, and every group has one owner among the replicas."""

from __future__ import annotations

from collections.abc import Sequence

Owners = tuple[int, ...]  # the replica that owns each group


def first_owners(groups: int, active: Sequence[int]) -> Owners:
    """Every group with an owner, as evenly as possible.

    >>> first_owners(5, (0, 2))
    (0, 0, 0, 2, 2)
    """
    return reassigned((-1,) * groups, active)


def reassigned(owners: Owners, active: Sequence[int]) -> Owners:
    """The owners once just these replicas are active: balanced within one group, and as few groups move as possible.

    Of n replicas, the first (groups mod n) by what they own get one group more than the others; a replica keeps its
    lowest groups.

    >>> reassigned((0, 0, 0, 0, 0, 0), (0, 1))
    (0, 0, 0, 1, 1, 1)
    >>> reassigned((0, 0, 0, 1, 1, 1), (1,))
    (1, 1, 1, 1, 1, 1)
    """
    held = {replica: [group for group, owner in enumerate(owners) if owner == replica] for replica in active}
    least, more = divmod(len(owners), len(active))
    by_held = sorted(active, key=lambda replica: -len(held[replica]))
    quota = {replica: least + (place < more) for place, replica in enumerate(by_held)}
    result = [-1] * len(owners)
    for replica, groups in held.items():
        for group in groups[: quota[replica]]:
            result[group] = replica
    free = iter([group for group, owner in enumerate(result) if owner < 0])
    for replica in active:
        for _ in range(quota[replica] - len(held[replica])):
            result[next(free)] = replica
    return tuple(result)
