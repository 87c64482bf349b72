"""Which finds come first."""

from __future__ import annotations

from siteloom.core.model import FoundDocument, IndexDocument, Passage
from siteloom.extraction.search_query import LOOKED_AT, best_first


def found(url: str, score: float, title: str = "", text: str = "", attribute: str = "") -> FoundDocument:
    passages = (Passage(title, "title", "name"), Passage(text, "text", attribute))
    return FoundDocument(IndexDocument("page", "a.example", url, passages), None, score)


def order(*finds: FoundDocument, words: str, attribute: str | None = None) -> list[str]:
    wanted = [(word,) for word in words.split()]
    best = best_first(finds, wanted, attribute)
    assert [one.score for one in best] == sorted((one.score for one in best), reverse=True)
    return [one.document.url for one in best]


def test_what_has_the_words_in_its_title_comes_before_what_has_them_more_often() -> None:
    finds = (found("list", 1.2, text="fern " * 20), found("fern", 1.0, title="Blue Fern", text="fern"))
    assert order(*finds, words="fern") == ["fern", "list"]
    assert order(*finds, words="tree") == ["list", "fern"]


def test_what_has_the_words_side_by_side_comes_before_what_has_them_apart() -> None:
    finds = (
        found("apart", 1.2, text="square of the mulberry"),
        found("both", 1.0, text="12 Mulberry, Square"),
    )
    assert order(*finds, words="mulberry square") == ["both", "apart"]
    assert order(*finds, words="square mulberry") == ["apart", "both"]


def test_what_fits_a_little_does_not_come_before_what_is_far_better() -> None:
    assert order(found("a", 3.0), found("b", 1.0, title="fern"), words="fern") == ["a", "b"]


def test_with_an_attribute_only_its_values_count() -> None:
    finds = (found("a", 1.2, text="x", attribute="city"), found("b", 1.0, title="Blue Fern"))
    assert order(*finds, words="blue fern", attribute="city") == ["a", "b"]
    assert order(*finds, words="blue fern", attribute="name") == ["b", "a"]


def test_later_finds_stay_behind_the_first() -> None:
    finds = [found(str(number), 1.0) for number in range(LOOKED_AT)]
    assert order(*finds, found("last", 1.0, title="fern"), words="fern")[-1] == "last"
