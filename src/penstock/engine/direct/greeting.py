"""How a sender introduces itself to a replica: both prove that they know the run's secret."""

from __future__ import annotations

import msgspec

CHALLENGE_BYTES = PROOF_BYTES = 32
LONGEST_GREETING = 4096


class Addressee(msgspec.Struct, array_like=True, frozen=True):
    """The replica that is meant, in the attempt that is meant: an earlier one's senders are not listened to."""

    run: str
    generation: int
    operator: str
    replica: int


class Greeting(msgspec.Struct, array_like=True, frozen=True):
    """What a sender says first: the answer to the receiver's challenge, and a challenge of its own."""

    to: Addressee
    answer: bytes
    challenge: bytes
