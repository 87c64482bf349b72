"""What a person can do to say what is where: all of a text or part of it, several values, none, records."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Page as BrowserPage
from playwright.sync_api import expect

from siteloom.core.model import Page, Seed
from siteloom.core.settings import StoreSettings
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.browser.annotator import Annotator
from tests.browser.serving import GUIDE, PHONE, make_workspace, some_pages

SHOP = "plants.example"
KINDS = ["Fern", "Sedge", "Yarrow", "Teasel", "Bracken", "Sorrel", "Mallow", "Campion"]
COLOURS = ["white", "yellow", "purple", "green"]

# What all pages share, of many kinds of elements, so that they are of one template whatever they lack.
COMMON = (
    "<nav><ol><li><a href=/>Home</a></li></ol></nav>"
    "<table><tbody><tr><th>Sun</th><td>some</td></tr></tbody></table>"
    "<dl><dt>Soil</dt><dd><i>any</i></dd></dl><section><h2>Care</h2><p>Water it <b>well</b>.</p></section>"
    "<footer><address>1 Green Lane</address><small>Open <time>daily</time></small></footer>"
)


class Plant:
    """What is true of a page of the shop."""

    def __init__(self, number: int) -> None:
        self.url = f"https://{SHOP}/plants/{number}"
        self.name = f"{KINDS[number]} of the {COLOURS[number % 4].title()} Hills"
        self.price = f"{number * 7 + 12}.{number}0"
        self.colours = [COLOURS[(number + step) % 4] for step in range(1 + number % 3)]
        self.height = f"{number + 2} feet" if number % 4 != 1 else None

    def html(self) -> str:
        colours = "".join(f"<li>{colour}</li>" for colour in self.colours)
        height = f"<p>Grows to <em>{self.height}</em></p>" if self.height else ""
        return (
            f"<!DOCTYPE html><html><head><title>{self.name}</title></head><body><h1><b>{self.name}</b></h1>"
            f"<p class=terms>Only {self.price} euros each, while stocks last.</p>"
            f"<ul class=colours>{colours}</ul>{height}{COMMON}</body></html>"
        )


TRUTH = {page.page.url: page.truth for page in some_pages() if page.kind == "restaurant"}
PLANTS = {plant.url: plant for plant in map(Plant, range(len(KINDS)))}


@pytest.fixture(scope="session")
def shop_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop") / ".siteloom"
    make_workspace(folder, [Page.from_text(plant.url, plant.html()) for plant in PLANTS.values()])
    return folder


@pytest.fixture
def workspace(shop_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(shop_folder, tmp_path / ".siteloom"))


@pytest.fixture
def annotator(page: BrowserPage) -> Annotator:
    """The annotator of the shop, of which nothing is known."""
    return at_template(page, SHOP)


def at_template(page: BrowserPage, site: str, number: int = 1) -> Annotator:
    page.goto(f"/clusters/{site}/{number}/annotate")
    annotator = Annotator(page)
    annotator.wait()
    return annotator


def shown(annotator: Annotator) -> Plant:
    return PLANTS[annotator.url()]


def go_on_until(annotator: Annotator, *, has_height: bool) -> None:
    while (shown(annotator).height is not None) != has_height:
        annotator.go_to_next_page()


def test_part_of_a_text_is_dragged_over(annotator: Annotator) -> None:
    annotator.add("price")
    annotator.drag_over(".terms", shown(annotator).price)
    assert annotator.values("price") == [shown(annotator).price]
    assert annotator.cut_off("price") == ["Only ", " euros each, while stocks last."]
    for _ in range(2):
        annotator.go_to_next_page()
        assert annotator.values("price") == [shown(annotator).price]
        assert annotator.cut_off("price") == ["Only ", " euros each, while stocks last."]


def test_several_values_are_marked_with_shift(annotator: Annotator) -> None:
    annotator.add("colour")
    while len(shown(annotator).colours) < 3:
        annotator.go_to_next_page()
    items = annotator.frame.locator(".colours li")
    annotator.click("colour", items.all())
    assert annotator.values("colour") == shown(annotator).colours
    expect(annotator.chip("colour")).to_have_text("1 colour*+")
    # With Shift, a value that was one of them is taken away again.
    items.nth(1).click(modifiers=["Shift"])
    annotator.wait()
    assert annotator.values("colour") == [shown(annotator).colours[0], shown(annotator).colours[2]]
    items.nth(1).click(modifiers=["Shift"])
    annotator.wait()
    annotator.page.get_by_role("button", name="Page before").click()
    annotator.wait()
    assert annotator.values("colour") == shown(annotator).colours


def test_one_key_says_that_there_is_no_value(annotator: Annotator) -> None:
    annotator.add("height")
    go_on_until(annotator, has_height=True)
    annotator.click("height", [annotator.frame.locator("em")])
    go_on_until(annotator, has_height=False)
    assert annotator.values("height") == []
    assert not annotator.is_settled()
    annotator.press("a")
    expect(annotator.row("height").get_by_role("cell")).to_have_text("absent")
    assert annotator.is_settled()


def test_arrow_keys_lead_to_parent_and_child(annotator: Annotator) -> None:
    annotator.add("name")
    hint = annotator.page.locator("[data-part=hint]")
    annotator.frame.locator("h1 b").hover()
    expect(hint).to_contain_text("(b)")
    for key, told in (
        ("ArrowUp", "(h1)"),
        ("ArrowDown", "(b)"),
        ("ArrowUp", "(h1)"),
        ("ArrowRight", "(p.terms)"),
    ):
        annotator.press(key)
        expect(hint).to_contain_text(told)
    annotator.press("ArrowLeft", "Enter")
    assert annotator.values("name") == [shown(annotator).name]


def test_enter_does_what_the_panel_says(annotator: Annotator) -> None:
    # The Enter that ended the name, pressed once more, does nothing, whatever the mouse is over.
    annotator.add("name")
    expect(annotator.question).to_contain_text("Click the value of name on the page, or press a")
    annotator.frame.locator(".terms").hover()
    annotator.press("Enter")
    expect(annotator.status).to_contain_text("Click the value of name on the page")
    assert annotator.values("name") == []
    annotator.click("name", [annotator.frame.locator("h1 b")])
    annotator.go_to_next_page()
    # What is asked is answered; only what arrow keys led to is assigned instead, and that is told.
    accept = annotator.question.get_by_role("button", name="yes").locator("kbd")
    annotator.add("terms")
    annotator.press("Enter")
    assert annotator.values("name") == [shown(annotator).name]
    assert not annotator.is_settled()
    annotator.press("1")
    hint = annotator.page.locator("[data-part=hint]")
    annotator.frame.locator(".terms").hover()
    expect(hint).to_contain_text("(p.terms)")
    expect(accept).to_be_visible()
    annotator.press("ArrowDown", "ArrowUp")
    expect(hint).to_contain_text("Enter assigns name")
    expect(accept).to_be_hidden()
    annotator.press("Escape")
    annotator.frame.locator("address").hover()
    annotator.press("Enter")
    expect(annotator.status).to_have_text("Name confirmed.")
    assert annotator.values("name") == [shown(annotator).name]


def test_keys_that_need_an_outline_say_so(annotator: Annotator) -> None:
    annotator.add("name")
    for key in ("t", "m", "[", "}", "h"):
        annotator.press("1")
        expect(annotator.status).to_have_text("")
        annotator.press(key)
        expect(annotator.status).to_contain_text("Outline a node first")


def test_the_values_of_an_attribute_on_all_pages_are_opened(annotator: Annotator) -> None:
    annotator.add("height")
    go_on_until(annotator, has_height=True)
    annotator.click("height", [annotator.frame.locator("em")])
    overview = annotator.page.get_by_role("region", name="On all sample pages")
    overview.get_by_role("button", name="height", exact=True).click()
    expect(overview).to_contain_text("How it is found:")
    items = overview.get_by_role("listitem")
    heights = [plant.height for plant in PLANTS.values()]
    expect(items).to_have_count(len(heights))
    # Those without a value are doubtful: they come first, and the remark leads to the first of them.
    missing = heights.count(None)
    for place in range(missing):
        expect(items.nth(place)).to_contain_text("nothing found")
    doubted = items.first.get_by_role("button").inner_text()
    remark = overview.get_by_role("button", name=f"{doubted} empty")
    remark.click()
    annotator.wait()
    assert shown(annotator).height is None
    expect(annotator.question).to_contain_text("no value is found. Is there none?")
    expect(annotator.question.get_by_role("heading")).to_contain_text(f"{missing} doubts")


def test_a_page_that_is_no_sample_is_told(page: BrowserPage) -> None:
    for asked in ("99999", "abc"):
        page.goto(f"/clusters/{SHOP}/1/annotate?page={asked}")
        annotator = Annotator(page)
        annotator.wait()
        expect(annotator.status).to_contain_text("not among the sample pages: this is page 1")
        expect(page.locator("[data-part=position]")).to_contain_text("page 1 of")


def test_attributes_are_described_where_they_stand(annotator: Annotator) -> None:
    annotator.add("name")
    annotator.add("sum")
    chip, editor = annotator.chip("name"), annotator.page.get_by_role("form", name="Attribute name")
    chip.dblclick()
    editor.get_by_label("Mandatory").select_option("yes")
    expect(chip).to_have_text("1 name*")
    editor.get_by_label("Values").select_option("several")
    expect(chip).to_have_text("1 name*+")
    editor.get_by_label("Type").select_option("text")
    editor.get_by_label("Name").fill("title")
    editor.get_by_role("button", name="Done").click()
    expect(editor).to_be_hidden()
    annotator.chip("sum").dblclick()
    annotator.page.get_by_role("form", name="Attribute sum").get_by_role("button", name="Remove").click()
    annotator.wait()
    annotator.page.reload()
    annotator.wait()
    expect(annotator.page.get_by_role("radio")).to_have_text(["1 title*+"])
    annotator.chip("title").dblclick()
    editor = annotator.page.get_by_role("form", name="Attribute title")
    for label, told in (
        ("Mandatory", "yes"),
        ("Values", "several"),
        ("Type", "text"),
        ("Constant", "as learned"),
    ):
        expect(editor.get_by_label(label).locator("option:checked")).to_have_text(told)


def test_names_that_cannot_be_are_told_and_kept(annotator: Annotator) -> None:
    annotator.add("name")
    annotator.add("price")
    editor = annotator.page.get_by_role("form", name="Attribute price")
    field = editor.get_by_label("Name")
    annotator.chip("price").dblclick()
    for typed, told in (("name", "There is an attribute name already"), ("  ", "An attribute needs a name")):
        field.fill(typed)
        editor.get_by_role("button", name="Done").click()
        expect(editor.get_by_role("alert")).to_contain_text(told)
        expect(field).to_have_value(typed)
    field.fill("cost")
    field.press("Enter")
    expect(editor).to_be_hidden()
    expect(annotator.page.get_by_role("radio")).to_have_text(["1 name", "2 cost"])
    # A new attribute cannot take the name of another, either.
    annotator.page.get_by_role("button", name="+ attribute").click()
    field = annotator.page.get_by_label("Name of the new attribute")
    for typed, told in (("", "An attribute needs a name"), ("cost", "There is an attribute cost already")):
        field.fill(typed)
        field.press("Enter")
        expect(annotator.page.get_by_role("alert").filter(has_text=told)).to_be_visible()
        expect(field).to_have_value(typed)
    annotator.add("colour")
    expect(annotator.page.get_by_role("radio")).to_have_text(["1 name", "2 cost", "3 colour"])


class TestKnown:
    """Restaurants of the guide are known from elsewhere."""

    @pytest.fixture
    def workspace(self, built_in_workspace: Path, tmp_path: Path) -> Path:
        folder = Path(shutil.copytree(built_in_workspace, tmp_path / ".siteloom"))
        seeds = [
            Seed({name: truth[name] for name in ("name", "phone") if truth[name]}) for truth in TRUTH.values()
        ]
        with (
            closing(open_store(StoreSettings(workspace=str(folder)))) as store,
            store.recording("seeds", {}) as run,
        ):
            store.add_seeds(run.id, seeds)
        return folder

    def test_known_values_are_offered(self, page: BrowserPage) -> None:
        annotator = at_template(page, GUIDE)
        offer = page.get_by_role("group", name="Known attributes").get_by_role("button", name="+ name")
        offer.click()
        expect(annotator.chip("name")).to_be_visible()
        annotator.wait()
        expect(annotator.row("name")).to_contain_text("seeds")
        assert annotator.values("name") == list(TRUTH[annotator.url()]["name"])
        expect(offer).to_be_hidden()
        # The field for a name, which had the focus, does not take the Enter that answers.
        expect(page.get_by_label("Name of the new attribute")).to_be_hidden()
        expect(annotator.question).to_contain_text("as known from seeds. Is that right?")
        annotator.press("Enter")
        assert annotator.is_settled()
        assert annotator.values("name") == list(TRUTH[annotator.url()]["name"])

    def test_suggestions_are_confirmed_together_once_they_were_seen(self, page: BrowserPage) -> None:
        annotator = at_template(page, GUIDE)
        for name in ("name", "phone"):
            page.get_by_role("button", name=f"+ {name}").click()
            annotator.wait()
        while not TRUTH[annotator.url()]["phone"]:
            annotator.press("n")
        page.set_viewport_size(PHONE)
        annotator.press("Shift+Enter")
        expect(annotator.status).to_contain_text("look at them")
        expect(page.get_by_role("button", name="all 2 are right")).to_be_in_viewport()
        annotator.press("Shift+Enter")
        expect(annotator.status).to_contain_text("2 suggestions of page")
        annotator.press("z")
        expect(page.get_by_role("button", name="all 2 are right")).to_be_visible()


class TestLists:
    """The guide's lists of restaurants."""

    @pytest.fixture
    def workspace(self, built_in_workspace: Path, tmp_path: Path) -> Path:
        return Path(shutil.copytree(built_in_workspace, tmp_path / ".siteloom"))

    def test_two_marked_records_teach_a_list(self, page: BrowserPage, workspace_store: Store) -> None:
        annotator = at_template(page, GUIDE, list_template(workspace_store))
        annotator.add("name")
        while annotator.frame.locator(".cards .ad").count():  # which looks like a record
            annotator.go_to_next_page()
        names = annotator.frame.locator(".cards h3 a")
        count = names.count()
        page.get_by_role("button", name="list").click()
        annotator.click("name", [names.nth(0)])
        annotator.click("name", [names.nth(1)])
        values = page.get_by_role("region", name="Values of this page")
        expect(values).to_contain_text(f"{count} records found, 2 marked")
        values.get_by_role("button", name=f"all {count} are right").click()
        annotator.wait()
        expect(values).to_contain_text(f"{count} records found, {count} marked")
        assert values.locator("q").all_inner_texts() == names.all_inner_texts()
        page.get_by_role("navigation", name="Sample pages").get_by_role("button").first.click()
        annotator.wait()
        expect(values).to_contain_text(f"{names.count()} records found, 0 marked")


def list_template(store: Store) -> int:
    """The number of the template of the guide's lists."""
    lists = {page.page.url for page in some_pages() if page.kind == "list"}
    clusters, addresses = store.clusters()
    own = [each for each in clusters if all(addresses[member].url in lists for member in each.members)]
    return int(max(own, key=lambda each: each.size).id.rpartition("/")[2])
