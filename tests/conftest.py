"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

# A busy machine makes single examples slow: no time limit for them.
settings.register_profile("penstock", deadline=None)
settings.load_profile("penstock")
