"""Chromium for the tests of the page. Where there is none they are skipped, loudly; in CI they fail."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.review.browser import CHROMIUM, NEEDED, chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    """Closed after the module: its event loop would be in the way of other tests of the same process."""
    if CHROMIUM is None:
        message = "no chromium here: the review page is NOT tested in a browser (apt-get install chromium)"
        if NEEDED:
            pytest.fail(message)
        pytest.skip(message)
    with chromium() as opened:
        yield opened
