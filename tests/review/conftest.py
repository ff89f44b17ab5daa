"""Chromium for the tests of the page. Where there is none they are skipped, loudly; in CI they fail."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.review.browser import CHROMIUM, NEEDED, chromium


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    if CHROMIUM is None:
        message = "no chromium here: the review page is NOT tested in a browser (apt-get install chromium)"
        if NEEDED:
            pytest.fail(message)
        pytest.skip(message)
    with chromium() as opened:
        yield opened
