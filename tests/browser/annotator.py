"""The annotator as a person uses it, who knows what is on the pages."""

from __future__ import annotations

import re
from collections.abc import Sequence

from playwright.sync_api import FrameLocator, Locator, Page, expect

# At each level below the body, how many elements that are seen stand before the one to go to.
_STEPS_FROM_BODY = """
node => {
  const isSeen = each => each.hasAttribute("data-siteloom")
    && [...each.getClientRects()].some(({ width, height }) => width > 0 && height > 0);
  const steps = [];
  for (let each = node; each !== each.ownerDocument.body; each = each.parentElement) {
    steps.unshift([...each.parentElement.children].filter(isSeen).indexOf(each));
  }
  return steps;
}
"""

# Where part of a text of the archived page is seen in the window: left, right and middle.
_PLACE_OF_TEXT = """
([selector, part]) => {
  const frame = document.querySelector("iframe[title='Archived page']");
  const around = frame.contentDocument.querySelector(selector);
  const isText = node => node.nodeType === Node.TEXT_NODE;
  const text = [...around.childNodes].find(node => isText(node) && node.data.includes(part));
  const range = frame.contentDocument.createRange();
  range.setStart(text, text.data.indexOf(part));
  range.setEnd(text, text.data.indexOf(part) + part.length);
  const [outer, inner] = [frame, range].map(each => each.getBoundingClientRect());
  return [outer.left + inner.left, outer.left + inner.right, outer.top + (inner.top + inner.bottom) / 2];
}
"""


class Annotator:
    """The annotator in a page of a browser."""

    def __init__(self, page: Page) -> None:
        self.page = page

    @property
    def frame(self) -> FrameLocator:
        """The archived page."""
        return self.page.frame_locator("iframe[title='Archived page']")

    @property
    def question(self) -> Locator:
        return self.page.get_by_role("region", name="Question", exact=True)

    @property
    def status(self) -> Locator:
        return self.page.locator("[data-part=status]")

    @property
    def finish_button(self) -> Locator:
        return self.page.get_by_role("button", name="Finish")

    def is_enough(self) -> bool:
        """Whether the application says by its looks that more annotation does not pay."""
        return "primary" in (self.finish_button.get_attribute("class") or "")

    def url(self) -> str:
        """The address of the archived page that is shown."""
        shown = self.page.get_by_role("navigation", name="Sample pages").locator("[aria-current=page]")
        return shown.get_attribute("title") or ""

    def is_settled(self) -> bool:
        shown = self.page.get_by_role("navigation", name="Sample pages").locator("[aria-current=page]")
        return shown.get_by_role("img", name="settled").count() == 1

    def wait(self) -> None:
        """Until the page is shown and nothing is being learned or looked for."""
        expect(self.page.locator("[data-part=position]")).to_contain_text("page ")
        expect(self.page.get_by_role("region", name="Page", exact=True)).not_to_have_attribute(
            "aria-busy", "true"
        )
        expect(self.page.locator("[data-part=busy]")).to_have_text("")

    def values(self, attribute: str) -> list[str]:
        """What stands beside an attribute among the values of the page that is shown."""
        return self.row(attribute).locator("q").all_inner_texts()

    def cut_off(self, attribute: str) -> list[str]:
        """What stands before and after the parts of texts that are the values."""
        return self.row(attribute).locator("del").all_text_contents()

    def remark(self, attribute: str) -> str:
        """What is said about an attribute on all sample pages."""
        overview = self.page.get_by_role("region", name="On all sample pages")
        row = overview.get_by_role("row").filter(has=self.page.get_by_role("rowheader", name=attribute))
        return row.get_by_role("cell").last.inner_text()

    def row(self, attribute: str) -> Locator:
        """An attribute among the values of the page that is shown."""
        values = self.page.get_by_role("region", name="Values of this page")
        name = self.page.get_by_role("button", name=attribute, exact=True)
        return values.get_by_role("row").filter(has=name)

    # by mouse

    def add(self, attribute: str) -> None:
        """Name an attribute; the field for it may stand there already."""
        field = self.page.get_by_label("Name of the new attribute")
        button = self.page.get_by_role("button", name="+ attribute")
        expect(field.or_(button)).to_be_visible()
        if button.is_visible():
            button.click()
        field.fill(attribute)
        field.press("Enter")
        expect(self.chip(attribute)).to_have_attribute("aria-checked", "true")
        self.wait()

    def chip(self, attribute: str) -> Locator:
        return self.page.get_by_role("radio", name=re.compile(rf"^\d+ {attribute}$"))

    def click(self, attribute: str, nodes: Sequence[Locator]) -> None:
        """Click the values of an attribute, those after the first with Shift."""
        self.chip(attribute).click()
        for number, node in enumerate(nodes):
            node.click(modifiers=["Shift"] if number else [])
        self.wait()

    def drag_over(self, selector: str, part: str) -> None:
        """Drag the mouse over part of a text of the element that a selector finds."""
        self.drag_between((selector, part), (selector, part))

    def drag_between(self, first: tuple[str, str], last: tuple[str, str]) -> None:
        """Drag the mouse from the start of one part of a text to the end of another."""
        left, _, top = self.page.evaluate(_PLACE_OF_TEXT, first)
        _, right, bottom = self.page.evaluate(_PLACE_OF_TEXT, last)
        # Playwright's mouse would wait for scripts of the frame to tell it of the drag: there are none.
        browser = self.page.context.new_cdp_session(self.page)
        steps = [
            ("mousePressed", left + 1, top),
            ("mouseMoved", (left + right) / 2, (top + bottom) / 2),
            ("mouseMoved", right - 1, bottom),
            ("mouseReleased", right - 1, bottom),
        ]
        self.page.mouse.move(left + 1, top)
        for kind, x, y in steps:
            held = {"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1}
            browser.send("Input.dispatchMouseEvent", held)
        browser.detach()
        self.wait()

    def say_absent(self, attribute: str) -> None:
        self.chip(attribute).click()
        self.page.get_by_role("button", name="absent").click()
        self.wait()

    def confirm(self, attribute: str) -> None:
        """Say yes to what is suggested for an attribute."""
        self.row(attribute).get_by_role("button").click()
        self.question.get_by_role("button", name="yes").click()
        self.wait()

    def go_to_next_page(self) -> None:
        before = self.url()
        self.page.get_by_role("button", name="Next page").click()
        shown = self.page.get_by_role("navigation", name="Sample pages").locator("[aria-current=page]")
        expect(shown).not_to_have_attribute("title", before)
        self.wait()

    def go_to(self, url: str) -> None:
        """Go to a page by its entry among the sample pages."""
        entries = self.page.get_by_role("navigation", name="Sample pages").get_by_role("button")
        entries.and_(self.page.get_by_title(url, exact=True)).click()
        self.wait()

    # by keyboard

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
        self.wait()

    def walk_to(self, node: Locator) -> None:
        """Walk with arrow keys from wherever the outline is, over the body of the page, to a node."""
        for _ in range(40):
            self.page.keyboard.press("ArrowUp")
            if "(body" in self.page.locator("[data-part=hint]").inner_text():
                break
        for steps in node.evaluate(_STEPS_FROM_BODY):
            self.page.keyboard.press("ArrowDown")
            for _ in range(steps):
                self.page.keyboard.press("ArrowRight")

    def tab_to(self, text: str, key: str = "Tab") -> None:
        """Move the focus until it is on something that says this."""
        focused = self.page.locator(":focus")
        for _ in range(80):
            self.page.keyboard.press(key)
            if focused.count() and focused.inner_text().strip() == text:
                return
        raise AssertionError(f"{text} cannot be reached with {key}.")
