"""How a replica is named."""

from __future__ import annotations

ReplicaId = tuple[str, int]  # an operator and its replica, or a source and its slot
