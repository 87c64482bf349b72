"""No page is wider than the screen of a small phone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from siteloom.store.store import Store
from tests.browser.conftest import Visiting
from tests.browser.serving import SMALL_PHONE, serving
from tests.lived_in import DIRECTORY, GUIDE

PATHS = (
    "/",
    "/add",
    f"/sites/{GUIDE}",
    f"/sites/{GUIDE}/urls",
    f"/clusters/{GUIDE}/1",
    f"/compare?a={GUIDE}/1&b={DIRECTORY}/1",
    "/records",
    "/review",
    f"/review?item=template-{GUIDE}%2F2",
    "/wrappers",
    f"/wrappers/{GUIDE}/1",
    "/search?words=thai",
    "/seeds",
    "/seeds/wrap",
    "/entities",
    "/monitoring",
    "/monitoring/alarms",
    f"/sites/{GUIDE}/health",
    "/performance",
    "/runs/8",
    "/pages/1",
    "/pages/1/changes",
    "/jobs",
    "/settings",
)


@pytest.fixture(scope="module")
def served(lived_in_store: Store) -> Iterator[str]:
    """The address of an application with something on every page."""
    with serving(lived_in_store) as address:
        yield address


def test_no_page_is_wider_than_the_screen(visiting: Visiting) -> None:
    page = visiting(viewport=SMALL_PHONE, has_touch=True, color_scheme="dark")
    for path in PATHS:
        page.goto(path)
        assert page.evaluate("document.scrollingElement.scrollWidth") <= SMALL_PHONE["width"], path


def test_charts_fit_and_can_be_seen(visiting: Visiting) -> None:
    page = visiting(viewport=SMALL_PHONE)
    for path in ("/monitoring", f"/sites/{GUIDE}/health", "/performance"):
        page.goto(path)
        boxes = [chart.bounding_box() for chart in page.locator("figure svg").all()]
        assert boxes, path
        for box in boxes:
            assert box is not None
            assert box["width"] > 80
            assert box["height"] > 40
            assert box["x"] + box["width"] <= SMALL_PHONE["width"]
