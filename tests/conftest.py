"""What all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine makes single examples slow: no time limit for them.
settings.register_profile("penstock", deadline=None)
settings.load_profile("penstock")

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared_folder() -> Path:
    """The folder with the real `traces` and `events`, beside the repository; skips the test where it is absent."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("no folder 'shared' with real traces and events beside the repository")
    return folder
