"""Columns are what varies, each thing once, the most telling first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteloom.learning.discovery.column_selection import ColumnCandidate, find_columns
from tests.learning.discovery.pages import pages, texts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

MANY = 40


def columns(bodies: Sequence[str], most: int = MANY) -> list[tuple[str, ...]]:
    """What the first units with a column have in it, joined by a bar; the most telling column first."""
    texts = texts_of(pages(bodies))

    def first(found: ColumnCandidate) -> tuple[str, ...]:
        some = list(found.strand.rows.values())[:2]
        return tuple("|".join(texts.texts[texts.text[row]] for row in rows) for rows in some)

    return [first(found) for found in find_columns(texts, most)]


def forms(bodies: Sequence[str]) -> list[str]:
    return [found.form for found in find_columns(texts_of(pages(bodies)), MANY)]


def test_what_is_the_same_everywhere_is_no_column() -> None:
    bodies = [
        f"<h1>Thing {n}</h1><h2>Fixed</h2><p>{'Rare' if n == 7 else 'Usual'}</p>"
        f"<img src={'/rare' if n == 9 else '/logo'}.png>"
        for n in range(30)
    ]
    assert columns(bodies) == [("Thing 0", "Thing 1")]


def test_a_column_with_a_few_other_contents_is_one() -> None:
    bodies = [f"<h1>Thing {n}</h1><p>{'Rare' if n % 5 == 0 else f'Usual {n % 2}'}</p>" for n in range(30)]
    assert ("Rare", "Usual 1") in columns(bodies)


def test_what_hardly_any_unit_has_is_no_column() -> None:
    bodies = [f"<h1>Thing {n}</h1>{f'<i>Extra {n}</i>' if n in (3, 9) else ''}" for n in range(60)]
    assert columns(bodies) == [("Thing 0", "Thing 1")]
    assert ("Extra 3", "Extra 9") in columns(bodies[:40])


def test_menus_that_lead_around_the_site_are_no_columns() -> None:
    def menu(number: int) -> str:
        return "".join(f"<li>Section {m}" for m in range(8) if (number + m) % 4)

    bodies = [f"<h1>Thing {n}</h1><ul class=sections>{menu(n)}</ul>" for n in range(30)]
    assert columns(bodies) == [("Thing 0", "Thing 1")]


def test_of_columns_that_say_the_same_the_title_is_kept() -> None:
    bodies = [f"<div class=crumbs>Thing {n}</div><h1>Thing {n}</h1><p>Text {n}</p>" for n in range(10)]
    texts = texts_of(pages(bodies))
    found = find_columns(texts, MANY)
    paths = [texts.path_text(int(texts.path[next(iter(one.strand.rows.values()))[0]])) for one in found]
    assert sum("/h1[1]/" in path for path in paths) == 1
    assert len(paths) == 2


def test_columns_that_say_almost_the_same_are_both_kept() -> None:
    bodies = [f"<h1>Thing {n}</h1><p>{f'Thing {n}' if n % 4 else f'Other {n}'}</p>" for n in range(20)]
    assert columns(bodies) == [("Thing 0", "Thing 1"), ("Other 0", "Thing 1")]


def test_the_most_telling_come_first_and_no_more_than_asked_for() -> None:
    bodies = [
        f"<p class=kind>Kind {n % 3}</p><ul>{''.join(f'<li>Part {n}.{m}' for m in range(9))}</ul>"
        f"<h1>Thing {n}</h1>" + (f"<p class=note>Note {n}</p>" if n % 2 else "")
        for n in range(30)
    ]
    first, second, third, fourth = columns(bodies)
    assert first == ("Thing 0", "Thing 1")
    assert second == ("Kind 0", "Kind 1")
    assert third == ("Note 1", "Note 3")
    assert fourth[0].startswith("Part 0.0|Part 0.1|")
    assert columns(bodies, 2) == [first, second]


def test_attributes_come_behind_texts_that_tell_as_much() -> None:
    bodies = [f"<img src=/i/{n}.jpg><h1>Thing {n}</h1><p>Kind {n % 9}</p>" for n in range(30)]
    assert forms(bodies) == ["text", "text", "attribute"]


SENTENCE = "The quick brown fox of number {} jumps over the lazy dog and on it goes"


def prose(number: int) -> str:
    """Running text in pieces of many sorts, on each page others."""
    tags = ("p", "blockquote", "em", "u", "pre", "code")
    pieces = [
        f"<{tag}>{SENTENCE.format(f'{number}.{m}')}</{tag}>"
        for m, tag in enumerate(tags)
        if (number + m) % 3 == 0
    ]
    return f"<h1>Thing {number}</h1><h2>Story</h2><div>{''.join(pieces)}</div>"


def test_pieces_of_running_text_are_one_column() -> None:
    bodies = [prose(n) for n in range(12)]
    assert sorted(forms(bodies)) == ["prose", "text"]
    (story,) = [cells for cells in columns(bodies) if cells[0].startswith("The quick")]
    assert story[0].split("|") == [SENTENCE.format(f"0.{m}") for m in (0, 3)]
    assert story[1].split("|") == [SENTENCE.format(f"1.{m}") for m in (2, 5)]


def test_short_pieces_are_fields_and_no_running_text() -> None:
    bodies = [prose(n).replace("jumps over the lazy dog and on it goes", "") for n in range(12)]
    assert "prose" not in forms([body.replace("The quick brown fox of number", "No.") for body in bodies])


def test_no_pages_have_no_columns() -> None:
    assert find_columns(texts_of([]), MANY) == []
