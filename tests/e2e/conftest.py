"""A tab of a browser for the tests of the dashboard."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..services import browser as chromium
from ..services.tab import Tab


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    if chromium.program() is None:
        pytest.skip("Chromium is not installed")
    with Tab(tmp_path_factory.mktemp("chromium")) as one:
        yield one


@pytest.fixture
def tab(opened: Tab) -> Tab:
    """An empty one, of the usual size: to start a browser takes longer than most of these tests."""
    opened.do("Page.navigate", url="about:blank")
    opened.until("location.href === 'about:blank'")
    opened.look((1280, 900))
    return opened
