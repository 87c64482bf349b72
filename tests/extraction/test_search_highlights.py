"""How finds are shown."""

from __future__ import annotations

from time import process_time

from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.model import IndexDocument, Passage
from siteloom.core.word_tokenizer import terms
from siteloom.extraction.search_query import Highlighted, Hit, shown_hit


def page(*passages: Passage) -> IndexDocument:
    return IndexDocument("page", "a.example", "http://a.example/1", passages)


def shown(document: IndexDocument, *phrases: str, attribute: str | None = None) -> Hit:
    return shown_hit(document, "a/1", 1.5, [tuple(terms(phrase)) for phrase in phrases], attribute)


def test_a_page_is_shown_with_its_title_and_the_words_that_were_found() -> None:
    found = shown(
        page(Passage("Café <b>Fern</b>", "title"), Passage("The CAFE\nof Ms Fern", "text")), "cafe", "fern"
    )
    assert found.title.marked("[", "]") == "[Café] <b>[Fern]</b>"
    assert found.snippet.marked("[", "]") == "The [CAFE] of Ms [Fern]"
    assert (found.cluster, found.score, found.attributes, found.values) == ("a/1", 1.5, (), {})


def test_phrases_are_marked_as_a_whole_and_only_where_they_stand() -> None:
    text = page(Passage("blue fern fern blue O'Brien", "text"))
    assert shown(text, "fern blue").snippet.marked("[", "]") == "blue fern [fern blue] O'Brien"
    assert shown(text, "O'Brien").snippet.marked("[", "]") == "blue fern fern blue [O'Brien]"


def test_a_snippet_shows_the_place_with_the_most_of_what_was_asked_for() -> None:
    filler = "word " * 200
    found = shown(page(Passage(f"blue {filler} fern and blue {filler}", "text")), "fern", "blue").snippet
    assert "[fern] and [blue] word" in found.marked("[", "]")
    assert found.text[0] == found.text[-1] == "…"
    assert len(found.text) <= 202


def test_of_places_with_as_much_the_first_is_shown_however_many_there_are() -> None:
    # The time goes up with the number of finds, not with its square.
    text = f"start {'fern blue ' * 40_000} end"
    started = process_time()
    found = shown(page(Passage(text, "text")), "fern", "blue").snippet
    assert process_time() - started < 3
    assert found.marked("[", "]").startswith("start [fern] [blue] [fern]")
    apart = f"blue {'word ' * 200} fern sky {'word ' * 200} fern blue sky"
    assert "[fern] [blue] [sky]" in shown(page(Passage(apart, "text")), "fern", "blue", "sky").snippet.marked(
        "[", "]"
    )


def test_of_a_record_the_values_that_were_found_come_first() -> None:
    record = IndexDocument(
        "record",
        "a.example",
        "http://a.example/1",
        (
            Passage("Blue Fern", "title", "name"),
            Passage("Thai", "common", "cuisine"),
            Passage("Fern street", "heading", "address"),
            Passage("Greek", "heading", "cuisine"),
        ),
    )
    found = shown(record, "fern")
    assert found.title.marked("[", "]") == "Blue [Fern]"
    assert found.snippet.marked("[", "]") == "address: [Fern] street | cuisine: Thai | cuisine: Greek"
    assert found.attributes == ("name", "address")
    assert found.values == {"name": ("Blue Fern",), "cuisine": ("Thai", "Greek"), "address": ("Fern street",)}
    assert shown(record, "fern", attribute="address").attributes == ("address",)


def test_what_has_no_text_is_shown_empty() -> None:
    found = shown(page(), "x")
    assert (found.title, found.snippet) == (Highlighted(""), Highlighted(""))


@given(st.text(), st.lists(st.text(min_size=1), min_size=1, max_size=3))
def test_marks_never_change_the_text(text: str, typed: list[str]) -> None:
    phrases = [tuple(terms(phrase)) for phrase in [*typed, text] if terms(phrase)]
    found = shown_hit(page(Passage(text, "title"), Passage(text, "text")), None, 0.0, phrases)
    assert found.title.text == text
    for part in (found.title, found.snippet):
        assert part.marked("", "") == part.text
        edges = [edge for place in part.places for edge in place]
        assert edges == sorted(set(edges))
        assert all(terms(part.text[start:end]) for start, end in part.places)
