"""What senders and replicas tell each other: requests go with events, replies and sketches come back."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from penstock.errors import InputError

_CELL = np.dtype("<f8")


class Request(NamedTuple):
    """Sender to replica, with an event: by how far is my estimate of your time off, when you have executed it?"""

    event: int  # its place in the bundle
    replica: int
    epoch: int
    estimate_s: float  # time of all events that this sender has sent to the replica


class Reply(NamedTuple):
    """Replica to sender: the time that all its events took, minus its estimate."""

    epoch: int
    delta_s: float


class Sketch(msgspec.Struct, frozen=True, array_like=True):
    """Replica to all senders: its stable Φ and Ω.

    >>> sketch = Sketch.of(np.array([[[2.0, 0.0]], [[0.25, 0.0]]]))
    >>> msgspec.msgpack.decode(msgspec.msgpack.encode(sketch), type=Sketch).array().tolist()
    [[[2.0, 0.0]], [[0.25, 0.0]]]
    """

    rows: int
    columns: int
    cells: bytes  # Φ, then Ω, row by row, as little-endian 64-bit numbers

    @classmethod
    def of(cls, array: NDArray[np.float64]) -> Sketch:
        """The message that carries this array of Φ and Ω."""
        return cls(array.shape[1], array.shape[2], array.astype(_CELL).tobytes())

    def array(self) -> NDArray[np.float64]:
        """Φ and Ω, of shape (2, rows, columns); every cell must be a number from 0 on."""
        expected = 2 * self.rows * self.columns * _CELL.itemsize
        if min(self.rows, self.columns) < 1 or len(self.cells) != expected:
            raise InputError(
                f"sketch: {self.rows} × {self.columns} cells must come in {expected} bytes; got {len(self.cells)}"
            )
        cells = np.frombuffer(self.cells, _CELL).astype(np.float64).reshape(2, self.rows, self.columns)
        if not (np.isfinite(cells) & (cells >= 0.0)).all():
            raise InputError("sketch: every cell must be a number from 0 on; got others")
        return cells
