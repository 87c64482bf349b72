"""Watches as text: what is written comes back, and what is damaged is refused in one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom import Page
from siteloom.core.errors import WatchError
from siteloom.maintenance.change_tests import check
from siteloom.maintenance.watch_file import watch_from_json, watch_to_json
from siteloom.maintenance.watched_pages import Bellwether, Past, Watch, watch
from tests.maintenance import guide
from tests.maintenance.inns import INNS, WRAPPER, pages

Content = dict[str, Any]
SMALL = replace(
    watch(WRAPPER, pages(INNS[:6]), name="inns.example/1"), past={"phone": Past(60, 3, 57, 1), "name": Past()}
)


def test_a_watch_comes_back_as_it_was() -> None:
    text = watch_to_json(guide.watched())
    found = watch_from_json(text)
    assert found == guide.watched()
    assert watch_to_json(found) == text
    assert "\n" not in text
    assert (
        check(found, guide.pages("mild-change")).changes
        == check(guide.watched(), guide.pages("mild-change")).changes
    )


def test_what_was_learned_comes_back_too() -> None:
    assert watch_from_json(watch_to_json(SMALL)) == SMALL
    seen = check(SMALL, pages(INNS[:6])).watch
    assert watch_from_json(watch_to_json(seen)).past["phone"] == Past(66, 3, 63, 1)


def test_the_pages_are_compressed() -> None:
    size = sum(len(one.page.html) for one in guide.watched().bellwethers)
    assert len(watch_to_json(guide.watched())) < size


texts = st.text(st.characters(exclude_categories=()), max_size=8).filter(
    lambda text: text == text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
)
odd_pages = st.builds(
    Page,
    texts,
    st.binary(max_size=60),
    st.none() | st.datetimes(timezones=st.just(UTC)),
    st.none() | st.sampled_from(["utf-8", "windows-1252", "no charset"]),
)
values = st.dictionaries(texts, st.lists(texts, min_size=1, max_size=2).map(tuple), max_size=2)


@given(
    st.lists(
        st.builds(Bellwether, odd_pages, st.just("0102"), st.tuples(values), st.tuples(st.just({}))),
        max_size=3,
    ),
    texts,
)
def test_any_bytes_and_any_values_come_back(bellwethers: list[Bellwether], name: str) -> None:
    odd = Watch(WRAPPER, tuple(bellwethers), name=name)
    assert watch_from_json(watch_to_json(odd)) == odd


def test_the_time_of_a_page_comes_back_to_the_microsecond() -> None:
    at = datetime(2016, 8, 22, 23, 59, 59, 999_999, UTC)
    one = replace(SMALL.bellwethers[0], page=Page("u", b"\xff\x00", at, "latin-1"))
    (found,) = watch_from_json(watch_to_json(replace(SMALL, bellwethers=(one,)))).bellwethers
    assert found.page == one.page


# ---- damage


def refusal(text: str) -> str:
    with pytest.raises(WatchError) as caught:
        watch_from_json(text)
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    assert ". " not in message
    return message


@pytest.mark.parametrize(
    "text", ["", "x", "null", "[]", "{}", "7", '"x"', "[" * 100_000, '{"format": "siteloom watch"}']
)
def test_what_is_no_watch_is_refused(text: str) -> None:
    assert refusal(text) == "This is no watch, or it is damaged: make it with siteloom watch."


def first(content: Content) -> Content:
    found: Content = content["bellwethers"][0]
    return found


@pytest.mark.parametrize(
    "damage",
    [
        lambda w: w.pop("bellwethers"),
        lambda w: w.update(bellwethers=7),
        lambda w: w.update(bellwethers=[7]),
        lambda w: w.update(past={"phone": {"colour": 1}}),
        lambda w: w.update(past=[]),
        lambda w: w["past"]["phone"].update(lost=61),
        lambda w: w["past"]["phone"].update(mistaken=58),
        lambda w: w.update(contracts={"phone": {"values": 1}}),
        lambda w: w.update(contracts={"phone": None}),
        lambda w: first(w).pop("url"),
        lambda w: first(w).update(html="not base64!"),
        lambda w: first(w).update(html="AAAA"),
        lambda w: first(w).update(html=7),
        lambda w: first(w).update(fetched_at="yesterday"),
        lambda w: first(w).update(fetched_at=7),
        lambda w: first(w).update(records=[7]),
        lambda w: first(w).update(records=[{"name": 7}]),
        lambda w: w.update(wrapper=7),
    ],
    ids=range(18),
)
def test_what_is_damaged_is_refused(damage: Callable[[Content], object]) -> None:
    content = json.loads(watch_to_json(SMALL))
    damage(content)
    assert refusal(json.dumps(content)) == "This is no watch, or it is damaged: make it with siteloom watch."


def test_a_watch_that_is_cut_short_is_refused() -> None:
    text = watch_to_json(SMALL)
    refusal(text[: len(text) // 2])


def test_a_page_that_is_cut_short_is_refused() -> None:
    """Else the page would seem to have lost what stood at its end."""
    content = json.loads(watch_to_json(SMALL))
    first(content)["html"] = first(content)["html"][: len(first(content)["html"]) // 8 * 4]
    refusal(json.dumps(content))


def test_a_wrapper_in_a_watch_that_cannot_be_read_is_an_error_of_the_watch() -> None:
    content = json.loads(watch_to_json(SMALL))
    content["wrapper"] = "{}"
    refusal(json.dumps(content))


@pytest.mark.parametrize(("key", "value"), [("format", "siteloom wrapper"), ("version", 0), ("version", "1")])
def test_another_format_is_named(key: str, value: object) -> None:
    content = json.loads(watch_to_json(SMALL))
    content[key] = value
    assert refusal(json.dumps(content)) == (
        "This is no watch that is known here: it is not version 1 of its format."
    )


@given(st.data())
def test_a_damaged_watch_is_refused_or_read_but_never_fails_otherwise(data: st.DataObject) -> None:
    content = json.loads(watch_to_json(replace(SMALL, bellwethers=SMALL.bellwethers[:1])))
    place: Any = content
    while isinstance(place, dict | list) and place:
        key: Any = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not isinstance(place[key], dict | list) or data.draw(st.booleans()):
            break
        place = place[key]
    if place:
        plain = st.none() | st.booleans() | st.integers() | st.floats() | texts
        place[key] = data.draw(
            plain | st.lists(plain, max_size=3) | st.dictionaries(texts, plain, max_size=3)
        )
    with suppress(WatchError):
        found = watch_from_json(json.dumps(content))
        check(found, pages(INNS[:1]))  # what is read can be used
