"""Archived pages as tests see them on the screen."""

from __future__ import annotations

from typing import NamedTuple

from playwright.sync_api import FrameLocator, Locator, Page, expect


class Box(NamedTuple):
    """Something on the screen."""

    x: float
    y: float
    width: float
    height: float

    def is_inside(self, other: Box) -> bool:
        return (
            other.x <= self.x
            and other.y <= self.y
            and self.x + self.width <= other.x + other.width
            and self.y + self.height <= other.y + other.height
        )

    def grown(self, by: float) -> Box:
        return Box(self.x - by, self.y - by, self.width + 2 * by, self.height + 2 * by)


def box_of(node: Locator) -> Box:
    found = node.bounding_box()
    assert found is not None
    return Box(found["x"], found["y"], found["width"], found["height"])


def shown(page: Page) -> FrameLocator:
    expect(page.locator(".page").first).not_to_have_attribute("aria-busy", "true")
    frame = page.frame_locator("iframe").first
    frame.locator("[data-siteloom]").first.wait_for(state="attached")
    return frame
