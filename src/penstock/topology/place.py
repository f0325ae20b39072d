"""Where in the user's code something was declared, for error messages."""

from __future__ import annotations

import sys
from pathlib import Path

_PACKAGE = f"{Path(__file__).resolve().parents[1]}/"


def caller_place() -> str:
    """`file.py:12` of the nearest caller outside Penstock (apps shipped with it count as outside)."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_PACKAGE) or file.startswith("apps/", len(_PACKAGE)):
            break
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
