"""The workbench of a cluster: what people say is kept, and what is learned of it is shown at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from sqlalchemy import delete

from siteloom.apps.demo.sites.built_in_page import BuiltinPage
from siteloom.core.errors import NotFound, Overtaken, UsageError
from siteloom.core.model import Attribute, Example, Seed
from siteloom.learning.annotation.annotation_questions import Cell, Sheet
from siteloom.learning.annotation.clicked_nodes import Pick, pick_of
from siteloom.learning.value_search.value_locations import ValueIndex
from siteloom.operations.annotate import annotated_templates
from siteloom.operations.annotation.annotation_session import Workbench
from siteloom.operations.annotation.sample_pages import SamplePage
from siteloom.operations.annotation.session_registry import Workbenches
from siteloom.store import schema
from siteloom.store.store import Store
from tests.operations.calls import learned_template


def kind_cluster(store: Store, guide: list[BuiltinPage], kind: str) -> str:
    """The largest cluster of pages of one kind."""
    urls = {one.page.url for one in guide if one.kind == kind}
    clusters, addresses = store.clusters()
    own = [found for found in clusters if all(addresses[member].url in urls for member in found.members)]
    return max(own, key=lambda found: found.size).id


@pytest.fixture
def cluster(store: Store, guide: list[BuiltinPage]) -> str:
    return kind_cluster(store, guide, "restaurant")


@pytest.fixture
def bench(store: Store, cluster: str) -> Workbench:
    return Workbench(store, cluster)


@pytest.fixture
def truth(guide: list[BuiltinPage]) -> dict[str, dict[str, tuple[str, ...]]]:
    return {one.page.url: dict(one.truth) for one in guide if one.kind == "restaurant"}


def picks(page: SamplePage, *texts: str) -> list[Pick]:
    index = ValueIndex(page.root)
    found = [pick_of(page.elements, page.numbers, index.find(text)[0].node, text) for text in texts]
    assert None not in found
    return [pick for pick in found if pick is not None]


def say(
    bench: Workbench,
    page: SamplePage,
    values: Mapping[str, Sequence[Pick] | None],
    author: str = "ana",
    *,
    record: int | None = None,
    seen: Mapping[str, int] | None = None,
) -> None:
    """Say something as one does who sees the page as it is."""
    bench.say(page.id, values, author, version=page.version, record=record, seen=seen or {})


def describe(
    bench: Workbench,
    name: str,
    told: Attribute = Attribute(),
    author: str = "ana",
    new_name: str | None = None,
) -> None:
    bench.describe(name, told, author, seen=bench.sheet().schema_revision, new_name=new_name)


def cell(sheet: Sheet, number: int, name: str) -> Cell:
    return sheet.pages[number].cells[name]


def test_before_anything_is_said_nothing_is_known(bench: Workbench, cluster: str) -> None:
    sheet = bench.sheet()
    assert (sheet.cluster, sheet.site, sheet.attributes, sheet.questions) == (cluster, "guide", [], [])
    assert [page.number for page in sheet.pages] == list(range(1, 11))
    assert [page.covered for page in sheet.pages] == sorted(page.covered for page in sheet.pages)
    assert sheet.coverage.settled == 0
    assert not sheet.coverage.is_enough
    assert sheet.problem is None


def test_one_click_suggests_the_values_of_all_other_pages(
    bench: Workbench, truth: dict[str, dict[str, tuple[str, ...]]]
) -> None:
    describe(bench, "name", Attribute(), "ana")
    first = bench.pages[0]
    say(bench, first, {"name": picks(first, *truth[first.page.url]["name"])}, "ana", seen={"name": 0})

    sheet = bench.sheet()

    said = cell(sheet, 0, "name")
    assert (said.state, said.source, said.differs) == ("said", "ana", False)
    assert [value.text for value in said.values] == list(truth[first.page.url]["name"])
    assert sheet.pages[0].is_settled
    assert sheet.pages[0].authors == ["ana"]
    for page in sheet.pages[1:]:
        suggested = page.cells["name"]
        assert suggested.state == "suggested"
        assert [value.text for value in suggested.values] == list(truth[page.url]["name"])
        (value,) = suggested.values
        shown = next(one for one in bench.pages if one.id == page.id)
        assert value.pick is not None
        assert shown.picked(value.pick).text == value.text
    assert [question.page for question in sheet.questions] == [page.id for page in sheet.pages[1:]]
    (attribute,) = sheet.attributes
    assert (attribute.settled, attribute.found, attribute.pages) == (1, 10, 10)
    assert attribute.learned is not None
    assert attribute.rule


def test_confirming_what_is_suggested_settles_pages_until_it_is_enough(
    bench: Workbench, truth: dict[str, dict[str, tuple[str, ...]]]
) -> None:
    describe(bench, "name", Attribute(), "ana")
    for page in bench.pages:
        say(bench, page, {"name": picks(page, *truth[page.page.url]["name"])}, "ana", seen={"name": 0})
    sheet = bench.sheet()
    assert all(page.is_settled for page in sheet.pages)
    assert sheet.questions == []
    assert sheet.coverage.is_enough
    assert sheet.coverage.sentence.startswith("10 of 10 sample pages are settled and show")


def test_what_is_said_absent_or_otherwise_than_found_is_asked_first(
    bench: Workbench, truth: dict[str, dict[str, tuple[str, ...]]]
) -> None:
    describe(bench, "name", Attribute(), "ana")
    for page in bench.pages[:4]:
        say(bench, page, {"name": picks(page, *truth[page.page.url]["name"])}, "ana", seen={"name": 0})
    odd = bench.pages[4]
    say(bench, odd, {"name": []}, "ben", seen={"name": 0})
    sheet = bench.sheet()
    said = cell(sheet, 4, "name")
    assert (said.state, list(said.values), said.source) == ("absent", [], "ben")
    if said.differs:
        assert sheet.questions[0].kind == "differs"
        assert sheet.questions[0].page == odd.id
        assert sheet.attributes[0].remark == "page 5 differs"


def test_what_was_said_can_be_taken_back(
    bench: Workbench, store: Store, truth: dict[str, dict[str, tuple[str, ...]]]
) -> None:
    describe(bench, "name", Attribute(), "ana")
    page = bench.pages[0]
    say(bench, page, {"name": picks(page, *truth[page.page.url]["name"])}, "ana", seen={"name": 0})
    revision = cell(bench.sheet(), 0, "name").revision
    say(bench, page, {"name": None}, "ana", seen={"name": revision})
    assert cell(bench.sheet(), 0, "name").state == "unknown"
    assert store.examples() == []
    assert len(store.annotations([page.id])) == 2


def test_another_process_sees_what_was_said(
    bench: Workbench, store: Store, cluster: str, truth: dict[str, dict[str, tuple[str, ...]]]
) -> None:
    describe(bench, "name", Attribute(mandatory=True), "ana")
    page = bench.pages[0]
    say(bench, page, {"name": picks(page, *truth[page.page.url]["name"])}, "ana", seen={"name": 0})
    again = Workbench(store, cluster)
    assert again.sheet() == bench.sheet()


def test_two_people_at_one_page_do_not_overwrite_each_other(
    bench: Workbench, store: Store, cluster: str, truth: dict[str, dict[str, tuple[str, ...]]]
) -> None:
    other = Workbench(store, cluster)
    page = bench.pages[0]
    told = truth[page.page.url]
    describe(bench, "name", Attribute(), "ana")
    describe(other, "phone", Attribute(), "ben")
    say(bench, page, {"name": picks(page, *told["name"])}, "ana", seen={"name": 0})
    say(other, page, {"phone": picks(page, *told["phone"])}, "ben", seen={"phone": 0})

    sheet = bench.sheet()

    assert [attribute.name for attribute in sheet.attributes] == ["name", "phone"]
    assert [cell(sheet, 0, name).source for name in ("name", "phone")] == ["ana", "ben"]
    assert sheet.pages[0].authors == ["ana", "ben"]
    with pytest.raises(Overtaken, match="ana said meanwhile that name is"):
        say(other, page, {"name": []}, "ben", seen={"name": 0})
    assert cell(bench.sheet(), 0, "name").state == "said"
    now = cell(other.sheet(), 0, "name").revision
    say(other, page, {"name": []}, "ben", seen={"name": now})
    assert cell(bench.sheet(), 0, "name").state == "absent"
    with pytest.raises(Overtaken, match="ben said meanwhile that name is absent here"):
        say(bench, page, {"name": None}, "ana", seen={"name": now})


def test_an_attribute_is_renamed_and_removed_with_what_was_said_of_it(
    bench: Workbench, truth: dict[str, dict[str, tuple[str, ...]]]
) -> None:
    page = bench.pages[0]
    for name in ("title", "phone"):
        describe(bench, name, Attribute(), "ana")
    say(bench, page, {"title": picks(page, *truth[page.page.url]["name"])}, "ana", seen={})
    describe(bench, "title", Attribute(mandatory=True), "ben", new_name="name")
    sheet = bench.sheet()
    assert [(one.name, one.mandatory) for one in sheet.attributes] == [("name", True), ("phone", None)]
    assert cell(sheet, 0, "name").state == "said"
    with pytest.raises(UsageError, match="There is an attribute phone already"):
        describe(bench, "name", Attribute(), "ben", new_name="phone")
    bench.remove("name", "ben", seen=bench.revision)
    assert [one.name for one in bench.sheet().attributes] == ["phone"]
    with pytest.raises(NotFound):
        bench.remove("name", "ben", seen=bench.revision)


@pytest.mark.parametrize(
    ("name", "sentence"), [("  ", "needs a name"), ("x" * 101, "at most 100"), ("_url", "begins with _")]
)
def test_a_name_that_cannot_be_is_refused(bench: Workbench, name: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        describe(bench, name, Attribute(), "ana")


def test_what_does_not_exist_is_told_so(bench: Workbench, store: Store) -> None:
    with pytest.raises(NotFound, match="no page 123456789"):
        bench.say(123456789, {}, "ana", version="", seen={})
    with pytest.raises(NotFound, match="no attribute price"):
        say(bench, bench.pages[0], {"price": []}, "ana", seen={})
    with pytest.raises(NotFound, match="no template guide/99"):
        Workbenches(store).bench("guide/99")


def test_the_schema_that_people_gave_holds_for_the_wrapper(
    bench: Workbench, store: Store, cluster: str, truth: dict[str, dict[str, tuple[str, ...]]]
) -> None:
    describe(bench, "name", Attribute(multi=True, constant=False), "ana")
    page = bench.pages[0]
    say(bench, page, {"name": picks(page, *truth[page.page.url]["name"])}, "ana", seen={})
    (template,) = annotated_templates(store, cluster)
    new = learned_template(store, template)
    assert new.learned is not None
    learned = new.learned.wrapper.attributes["name"].attribute
    assert (learned.multi, learned.constant) == (True, False)


def test_values_of_seeds_and_earlier_annotations_are_suggested(
    bench: Workbench, store: Store, truth: dict[str, dict[str, tuple[str, ...]]]
) -> None:
    with store.recording("seeds", {}) as run:
        store.add_seeds(
            run.id,
            [
                Seed({name: told[name] for name in ("name", "phone") if told.get(name)}, source="table")
                for told in truth.values()
            ],
        )
    bench.look_up_known()
    sheet = bench.sheet()
    assert {"name", "phone"} <= {offer.name for offer in sheet.offers}
    assert {offer.source for offer in sheet.offers if offer.name == "name"} == {"seeds"}
    describe(bench, "phone", Attribute(), "ana")
    sheet = bench.sheet()
    known = [page.cells["phone"] for page in sheet.pages if page.cells["phone"].state == "known"]
    assert len(known) >= 5
    assert all(one.source == "seeds" and one.values[0].pick is not None for one in known)
    assert "phone" not in {offer.name for offer in sheet.offers}
    assert {question.kind for question in sheet.questions} == {"known"}


def test_two_marked_records_teach_a_list(store: Store, guide: list[BuiltinPage]) -> None:
    cluster = kind_cluster(store, guide, "list")
    bench = Workbench(store, cluster)
    told = {one.page.url: one.records for one in guide}
    page = next(one for one in bench.pages if len(told[one.page.url]) >= 3)
    records = told[page.page.url]
    names = ("name", "price", "rating")
    for name in names:
        describe(bench, name, Attribute(), "ana")
    for record, told_record in ((None, records[0]), (1, records[1])):  # at first it is not known to be a list
        said = {name: picks(page, *told_record[name]) for name in names}
        say(bench, page, said, "ana", record=record, seen={})

    sheet = bench.sheet()

    assert sheet.is_list
    assert sheet.problem is None
    for shown in sheet.pages:
        found = [record["name"][0].text for record in shown.found_records]
        assert {record["name"][0] for record in told[shown.url]} <= set(found)  # two do not tell off all ads
        assert len(shown.record_elements) == len(found)
    asked = next(question for question in sheet.questions if question.page != page.id)
    assert "records are found" in asked.text or "1 record is found" in asked.text
    other = next(shown for shown in sheet.pages if shown.id == asked.page)
    confirmed = [
        {name: [value.pick for value in values if value.pick] for name, values in record.items()}
        for record in other.found_records
    ]
    bench.say_records(other.id, confirmed, "ana", version=other.version, seen=0)
    assert next(shown for shown in bench.sheet().pages if shown.id == other.id).is_settled
    with pytest.raises(Overtaken):
        bench.say_records(other.id, confirmed[:1], "ben", version=other.version, seen=0)


def test_examples_that_were_given_by_value_are_shown(
    store: Store, cluster: str, truth: dict[str, dict[str, tuple[str, ...]]]
) -> None:
    page = Workbench(store, cluster).pages[0]
    told = truth[page.page.url]
    store.save_example(page.address, Example(page.page, {"name": list(told["name"])}), "file")
    sheet = Workbench(store, cluster).sheet()
    said = cell(sheet, 0, "name")
    assert (said.state, said.source) == ("said", "file")
    assert [value.text for value in said.values] == list(told["name"])
    assert all(value.pick is not None for value in said.values)
    assert sheet.pages[1].cells["name"].state == "suggested"


def test_saying_the_same_again_is_no_conflict(
    bench: Workbench, store: Store, truth: dict[str, dict[str, tuple[str, ...]]]
) -> None:
    describe(bench, "name", Attribute())
    page = bench.pages[0]
    said = {"name": picks(page, *truth[page.page.url]["name"])}
    say(bench, page, said, seen={"name": 0})
    say(bench, page, said, seen={"name": 0})  # the answer to the first was lost
    assert len(store.annotations([page.id])) == 1
    bench.describe("name", Attribute(), "ana", seen=1, new_name="title")
    bench.describe("name", Attribute(), "ana", seen=1, new_name="title")
    assert [one.name for one in bench.sheet().attributes] == ["title"]


def test_whoever_changes_attributes_must_have_seen_them(bench: Workbench) -> None:
    bench.describe("name", Attribute(multi=True), "ana", seen=0)
    with pytest.raises(Overtaken, match="changed the attributes meanwhile"):
        bench.describe("name", Attribute(mandatory=True), "ben", seen=0)
    seen = bench.revision
    say(bench, bench.pages[0], {"name": []})
    with pytest.raises(Overtaken, match="would be lost"):
        bench.remove("name", "ben", seen=seen)


def test_a_value_said_under_a_name_that_is_gone_is_refused_not_revived(
    bench: Workbench, store: Store, cluster: str
) -> None:
    describe(bench, "name", Attribute())
    late = Workbench(store, cluster)
    describe(bench, "name", Attribute(), new_name="title")
    with pytest.raises(NotFound, match="no attribute name"):
        say(late, late.pages[0], {"name": []})
    assert [one.name for one in late.sheet().attributes] == ["title"]


def test_who_renames_is_not_taken_for_who_said_it(
    bench: Workbench, truth: dict[str, dict[str, tuple[str, ...]]]
) -> None:
    describe(bench, "name", Attribute(), "ana")
    page = bench.pages[0]
    say(bench, page, {"name": picks(page, *truth[page.page.url]["name"])}, "ana")
    describe(bench, "name", Attribute(), "ben", new_name="title")
    assert cell(bench.sheet(), 0, "title").source == "ana"


def listed(
    bench: Workbench, guide: list[BuiltinPage]
) -> list[tuple[SamplePage, list[Mapping[str, tuple[str, ...]]]]]:
    told = {one.page.url: list(one.records) for one in guide}
    return [(page, told[page.page.url]) for page in bench.pages if len(told[page.page.url]) >= 3]


def test_values_of_whole_pages_are_first_records_once_a_page_is_a_list(
    store: Store, guide: list[BuiltinPage]
) -> None:
    bench = Workbench(store, kind_cluster(store, guide, "list"))
    (one, first), (other, second), *_ = listed(bench, guide)
    for name in ("name", "price", "rating"):
        describe(bench, name, Attribute())

    def values(page: SamplePage, record: Mapping[str, Sequence[str]]) -> dict[str, list[Pick]]:
        return {name: picks(page, *record[name]) for name in ("name", "price", "rating")}

    say(bench, one, values(one, first[0]), "ben")
    say(bench, other, values(other, second[0]))
    say(bench, other, values(other, second[1]), record=1)
    sheet = bench.sheet()
    assert sheet.problem is None
    shown = next(page for page in sheet.pages if page.id == one.id)
    (record,) = shown.records
    assert (record["name"].state, record["name"].source) == ("said", "ben")
    assert len(shown.found_records) > 1
    assert not shown.is_settled
    say(bench, one, {"price": []}, record=0, seen={"price": record["price"].revision})
    shown = next(page for page in bench.sheet().pages if page.id == one.id)
    assert shown.records[0]["price"].state == "absent"


def test_records_that_were_said_are_held_against_those_that_are_found(
    store: Store, guide: list[BuiltinPage]
) -> None:
    bench = Workbench(store, kind_cluster(store, guide, "list"))
    (page, told), *_ = listed(bench, guide)
    for name in ("name", "price", "rating"):
        describe(bench, name, Attribute())
    for number, record in enumerate(told[:3]):
        say(
            bench,
            page,
            {name: picks(page, *record[name]) for name in ("name", "price", "rating")},
            record=number,
        )
    shown = next(one for one in bench.sheet().pages if one.id == page.id)
    assert [record["name"].differs for record in shown.records] == [False] * 3
    assert all(record["name"].finds for record in shown.records)
    say(bench, page, {"price": []}, record=0)
    sheet = bench.sheet()
    first = sheet.questions[0]
    assert (first.kind, first.attribute, first.page) == ("differs", "price", page.id)
    assert first.record is not None
    assert sheet.attributes[1].remark == f"page {page.number} differs"
    with pytest.raises(NotFound, match="no attribute fax"):
        bench.say_records(page.id, [{"fax": []}], "ana", version=page.version, seen=shown.revision)


def test_what_another_took_back_is_not_put_back_unseen(store: Store, guide: list[BuiltinPage]) -> None:
    bench = Workbench(store, kind_cluster(store, guide, "list"))
    (page, told), *_ = listed(bench, guide)
    describe(bench, "name", Attribute())
    for number, record in enumerate(told[:2]):
        say(bench, page, {"name": picks(page, *record["name"])}, record=number)
    seen = next(one for one in bench.sheet().pages if one.id == page.id).revision
    say(bench, page, {"name": None}, "ben", record=1)
    both = [{"name": picks(page, *record["name"])} for record in told[:2]]
    with pytest.raises(Overtaken):
        bench.say_records(page.id, both, "ana", version=page.version, seen=seen)


def test_what_the_wrapper_in_force_finds_is_there_to_be_confirmed_and_is_not_lost(
    store: Store, cluster: str, truth: dict[str, dict[str, tuple[str, ...]]]
) -> None:
    bench = Workbench(store, cluster)
    for name in ("name", "phone"):
        describe(bench, name, Attribute())
    for page in bench.pages[:3]:
        told = truth[page.page.url]
        say(bench, page, {name: picks(page, *told[name]) for name in ("name", "phone")})
    (template,) = annotated_templates(store, cluster)
    learned_template(store, template)
    with store.engine.begin() as connection:  # as if a person had never said which attributes there are
        connection.execute(delete(schema.annotations))
        connection.execute(delete(schema.cluster_schemas))

    bench = Workbench(store, cluster)
    sheet = bench.sheet()
    assert [one.name for one in sheet.attributes] == ["name", "phone"]
    known = cell(sheet, 0, "phone")
    assert (known.state, known.source) == ("known", "the wrapper in force")
    describe(bench, "name", Attribute(mandatory=True))
    say(bench, bench.pages[0], {"name": picks(bench.pages[0], *truth[bench.pages[0].page.url]["name"])})
    assert cell(bench.sheet(), 1, "phone").state == "known"

    (template,) = annotated_templates(store, cluster)
    new = learned_template(store, template)
    assert (new.lost_attributes, new.unchanged_attributes) == ((), ("phone",))
    assert new.learned is not None
    assert set(new.learned.wrapper.attributes) == {"name", "phone"}
    bench.remove("phone", "ana", seen=bench.revision)
    assert learned_template(store, template).lost_attributes == ("phone",)


def test_a_new_attribute_is_not_asked_for_before_it_was_shown(
    bench: Workbench, truth: dict[str, dict[str, tuple[str, ...]]]
) -> None:
    describe(bench, "name", Attribute())
    page = bench.pages[0]
    say(bench, page, {"name": picks(page, *truth[page.page.url]["name"])})
    describe(bench, "phone", Attribute())
    sheet = bench.sheet()
    assert {one.cells["phone"].state for one in sheet.pages} == {"unknown"}
    assert {question.attribute for question in sheet.questions} == {"name"}
