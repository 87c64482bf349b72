# ruff: noqa: RUF001 - signs and letters that look like others are what is read here

from __future__ import annotations

import datetime as dt
import json
import sys
import time
from decimal import Decimal
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from siteloom.core.errors import MissingExtra
from siteloom.core.model import ValueType
from siteloom.core.values import lacks_extra, typed_value
from siteloom.core.values.dates import order_of_dates
from siteloom.core.values.type_inference import infer_type
from siteloom.core.values.value_types import Image, Price, Rating, to_plain

BASE = "https://shop.example/list/page.html"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", "12"), ("0", "0"), ("12.5", "12.5"), ("12,5", "12.5"), ("1,234", "1234"),
        ("1,234.56", "1234.56"), ("1.234,56", "1234.56"), ("1 234,56", "1234.56"),
        ("1\u202f234,56", "1234.56"), ("1'234.50", "1234.50"), ("1’234", "1234"), ("1.234.567", "1234567"),
        ("1,234,567.890", "1234567.890"), ("1,23,456.00", "123456.00"), ("0.125", "0.125"),
        ("0,125", "0.125"), ("1234,567", "1234.567"), (".5", "0.5"), ("-3", "-3"), ("−3,5", "-3.5"),
        ("+3", "3"), ("45%", "45"), ("45 %", "45"), ("4.5 kg", "4.5"), ("4.5kg", "4.5"),
        ("Weight: 4.5 kg", "4.5"), ("120 m²", "120"), ("(17)", "17"), ("-12 °C", "-12"), ("٣", "3"),
        ("5 miles", "5"), ("1 234 567", "1234567"), ("37 reviews", "37"), ("-.5", "-0.5"),
    ],
)  # fmt: skip
def test_a_number_is_read_however_it_is_written(text: str, value: str) -> None:
    assert typed_value(text, "number") == Decimal(value)


@pytest.mark.parametrize(
    "text",
    [
        "", "none", "1.234", "3 1/2", "1/2", "3½", "1 2", "12 34 56", "10-20", "10 – 20", "10:30",
        "2011-04-03", "1e5", "192.168.1.1", "1.2.3", "1...5", "1,2,3", "A4", "12a", "mp3", "AB-12", "5M",
        "5k", "1.2 million", "3 Mio.", "5万", "<5", "> 100", "~7", "100+", "4/5", "1,2345.6", "555-1234",
        "+49 30 123", "0,123,456", "5_000",
    ],
)  # fmt: skip
def test_what_is_no_single_certain_number_is_none(text: str) -> None:
    assert typed_value(text, "number") is None


@pytest.mark.parametrize(
    ("text", "amount", "currency"),
    [
        ("$12.99", "12.99", "$"), ("US$ 12.99", "12.99", "USD"), ("US $5", "5", "USD"),
        ("$5 CAD", "5", "CAD"), ("A$5.00", "5.00", "AUD"), ("C$5", "5", "C$"),
        ("€1,234.56", "1234.56", "EUR"), ("1.234,56 €", "1234.56", "EUR"), ("1.234 €", "1234", "EUR"),
        ("12,99 Euro", "12.99", "EUR"), ("12 euros", "12", "EUR"), ("£5", "5", "GBP"),
        ("¥1200", "1200", "¥"), ("500円", "500", "JPY"), ("5€99", "5.99", "EUR"), ("12,- €", "12", "EUR"),
        ("CHF 12.–", "12", "CHF"), ("CHF 1'234.50", "1234.50", "CHF"), ("1 234,56 zł", "1234.56", "PLN"),
        ("-$5", "-5", "$"), ("$-5", "-5", "$"), (",89 €", "0.89", "EUR"),
        ("₹ 1,23,456.00", "123456.00", "INR"), ("Rs.500", "500", "Rs"), ("kr 99", "99", "kr"),
        ("99 kr.", "99", "kr"), ("5 lei", "5", "lei"), ("R$ 12,50", "12.50", "BRL"),
        ("12.990 KWD", "12.990", "KWD"), ("12.990 CLP", "12990", "CLP"),
        ("1,234,567.890 USD", "1234567.890", "USD"), ("EUR12.99", "12.99", "EUR"),
        ("ab 19,99 €", "19.99", "EUR"), ("Our price: $12.99", "12.99", "$"), ("$5/month", "5", "$"),
        ("£0.350", "0.350", "GBP"), ("1 234 567,89 руб.", "1234567.89", "RUB"), ("12.99", "12.99", None),
        ("1,234", "1234", None), ("from 12.99", "12.99", None), ("($5)", "5", "$"),
        ("Price: EUR 5", "5", "EUR"),
    ],
)  # fmt: skip
def test_a_price_is_read_with_its_currency(text: str, amount: str, currency: str | None) -> None:
    assert typed_value(text, "price") == Price(Decimal(amount), currency)


@pytest.mark.parametrize(
    "text",
    [
        "", "Free", "$", "$12.99 $9.99", "$12 - $15", "12.99 - 15.99", "3 for $10", "2 pairs from $349",
        "10% off", "99p", "50¢", "50 ct", "USD 1.2M", "Model 5", "SKU12345", "$1.2.3", "$3.459", "£3.350",
        "1.234", "call 555-1234", "ALL items 5",
    ],
)  # fmt: skip
def test_what_is_no_single_certain_price_is_none(text: str) -> None:
    assert typed_value(text, "price") is None


@pytest.mark.parametrize(
    "text",
    [
        "2011-04-03", "2011/04/03", "2011.4.3", "3.4.2011", "03.04.2011", "3. 4. 2011", "03.04.11",
        "3 April 2011", "3. April 2011", "April 3, 2011", "Apr. 3, 2011", "Apr 3 2011",
        "3rd of April, 2011", "3 Apr 11", "3-Apr-2011", "3 Apr '11", "Sunday, April 3rd, 2011",
        "Sun, 3 Apr 2011", "3 avril 2011", "3 de abril de 2011", "3 апреля 2011 г.", "3 kwietnia 2011",
        "3. dubna 2011", "3 nisan 2011", "2011年4月3日", "2011年4月3日(日)", "2011년 4월 3일", "2011. 4. 3.",
        "So, 03.04.2011", "dim. 3 avril 2011", "söndag 3 april 2011", "2011. április 3.", "3 Απριλίου 2011",
        "٣ أبريل ٢٠١١", "Published: 3 April 2011", "domenica 3 aprile 2011",
    ],
)  # fmt: skip
def test_a_date_is_read_in_many_forms(text: str) -> None:
    assert typed_value(text, "date") == dt.date(2011, 4, 3)
    assert not isinstance(typed_value(text, "date"), dt.datetime)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2011-04-03T10:11:12Z", "2011-04-03T10:11:12+00:00"),
        ("2011-04-03 10:11", "2011-04-03T10:11:00"),
        ("2011-04-03T10:11:12.5+02:00", "2011-04-03T10:11:12.500000+02:00"),
        ("Sun, 03 Apr 2011 10:11:12 GMT", "2011-04-03T10:11:12+00:00"),
        ("3 April 2011 10:11 EST", "2011-04-03T10:11:00"),
        ("Apr 3, 2011 at 5pm", "2011-04-03T17:00:00"),
        ("April 3, 2011, 12:05 a.m.", "2011-04-03T00:05:00"),
        ("3. April 2011 um 18:30 Uhr", "2011-04-03T18:30:00"),
        ("3 avril 2011 à 18h30", "2011-04-03T18:30:00"),
        ("18:30, 3 April 2011", "2011-04-03T18:30:00"),
        ("25/04/2011 18:30", "2011-04-25T18:30:00"),
    ],
)
def test_a_date_with_a_time_is_a_datetime(text: str, expected: str) -> None:
    value = typed_value(text, "date")
    assert isinstance(value, dt.datetime)
    assert value.isoformat() == expected


@pytest.mark.parametrize(
    "text",
    [
        "", "2 days ago", "yesterday", "tomorrow", "monday", "in 2 days", "today 3:00", "1 hour ago 2011",
        "3 May", "May 3", "May 2011", "10/2017", "2011", "20110403", "11:50", "23", "31/02/2011",
        "29 Feb 2011", "13/14/2011", "3-5 May 2011", "May 3, 2011 - June 4, 2012", "12 Monkeys 1995",
        "Blade Runner 2049", "1 a 2011", "1 et 2011", "3 one 2011", "3 eleven 2011", "5 listopada 2011",
        "5 srp 2011", "5 červen 2011", "11-04-03", "3 มกราคม 2554", "3 May 2011 25:00",
        "3 May 2011 10:00 - 12:00", "3 May 2011 13:00 pm", "9999999999 May 3", "0000-00-00", "12.99",
    ],
)  # fmt: skip
def test_what_is_no_certain_date_is_none(text: str) -> None:
    assert typed_value(text, "date") is None


def test_the_order_of_day_and_month_must_be_told_or_plain() -> None:
    assert typed_value("03/04/2011", "date") is None
    assert typed_value("03/04/2011", "date", day_first=True) == dt.date(2011, 4, 3)
    assert typed_value("03/04/2011", "date", day_first=False) == dt.date(2011, 3, 4)
    assert typed_value("04/04/2011", "date") == dt.date(2011, 4, 4)
    assert typed_value("25/04/2011", "date", day_first=False) == dt.date(2011, 4, 25)
    assert typed_value("04/25/2011", "date", day_first=True) == dt.date(2011, 4, 25)
    assert typed_value("04/25/69", "date") == dt.date(1969, 4, 25)
    assert typed_value("04/25/68", "date") == dt.date(2068, 4, 25)


def test_dates_tell_the_order_of_others() -> None:
    assert order_of_dates(["03/04/2011", "25/04/2011"]) is True
    assert order_of_dates(["03/04/2011", "04/25/2011 10:00"]) is False
    assert order_of_dates(["03/04/2011"]) is None
    assert order_of_dates(["25/04/2011", "04/25/2011", "2011-04-25"]) is None


def test_a_date_does_not_depend_on_those_read_before_it() -> None:
    before = typed_value("3 mar 2012", "date")
    typed_value("Di, 11. Aug 2020", "date")
    typed_value("mar 3 mai 2012", "date")
    assert typed_value("3 mar 2013", "date") == dt.date(2013, 3, 3)
    assert before == dt.date(2012, 3, 3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("item.html", "https://shop.example/list/item.html"), ("/a b", None),
        ("/a", "https://shop.example/a"), ("../x/", "https://shop.example/x/"), ("?p=2", f"{BASE}?p=2"),
        ("#top", f"{BASE}#top"), ("//cdn.example/x", "https://cdn.example/x"),
        ("http://other.example", "http://other.example"),
        ("www.other.example/x", "https://www.other.example/x"),
        ("mailto:a@b.example", "mailto:a@b.example"), ("tel:+49-30-1234", "tel:+49-30-1234"),
        ("javascript:void(0)", None), ("data:text/plain,x", None), ("other.example", None),
        ("Blade Runner", None), ("Homepage", None), ("http://", None), ("http://[", None), ("", None),
        ("file:///etc/passwd", None), ("a@b.example", None), ("mailto:", None),
    ],
)  # fmt: skip
def test_an_address_becomes_absolute(text: str, expected: str | None) -> None:
    assert typed_value(text, "url", BASE) == expected


def test_a_link_is_read_as_browsers_do() -> None:
    assert typed_value("about", "url", BASE, {"href": " about "}) == "https://shop.example/list/about"
    assert (
        typed_value("www.x.example", "url", BASE, {"href": "www.x.example"})
        == "https://shop.example/list/www.x.example"
    )
    assert typed_value("/a b", "url", BASE, {"href": "/a b"}) == "https://shop.example/a%20b"
    assert typed_value("Homepage", "url", BASE, {"href": "/home"}) == "https://shop.example/home"
    assert typed_value("red", "url", BASE, {"class": "red"}) is None
    assert typed_value("/a", "url") is None
    assert typed_value("x.html", "url", "file:///saved/page.html") == "file:///saved/x.html"


def test_an_image_has_its_address_and_alt() -> None:
    attributes = {"src": "a.jpg", "alt": "A lamp"}
    lamp = Image("https://shop.example/list/a.jpg", "A lamp")
    assert typed_value("a.jpg", "image", BASE, attributes) == lamp
    assert typed_value("A lamp", "image", BASE, attributes) == lamp
    assert typed_value("a.jpg", "image", BASE) == Image(lamp.url, None)
    lazy = {"src": "data:image/gif;base64,R0lGOD", "data-src": "a.jpg", "alt": "A lamp"}
    assert typed_value("A lamp", "image", BASE, lazy) == lamp
    assert typed_value("a.jpg", "image", BASE, {"src": "blank.gif", "data-src": "a.jpg"}) == Image(
        lamp.url, None
    )
    assert typed_value("A lamp", "image", BASE) is None
    assert typed_value("x", "image", BASE, {"src": "mailto:a@b.example"}) is None


@pytest.mark.parametrize(
    ("text", "value", "best"),
    [
        ("4.5", "4.5", None), ("4.5 out of 5", "4.5", "5"), ("4,5/5", "4.5", "5"),
        ("4.5 / 10", "4.5", "10"), ("Rated 4.5 out of 5 stars", "4.5", "5"),
        ("4,5 von 5 Sternen", "4.5", "5"), ("4 stars", "4", None), ("80%", "80", "100"),
        ("width:80%", "80", "100"), ("float: left; width: 84.5%;", "84.5", "100"), ("★★★★☆", "4", "5"),
        ("★★★", "3", None), ("4.5 (123 reviews)", "4.5", None), ("Rating: 7", "7", None),
        ("stars-4-5.gif", "4.5", None), ("/img/rating_45.png?v=2", "4.5", None),
        ("4halfstars.gif", "4.5", None), ("stars_4_half.png", "4.5", None), ("4stars.gif", "4", None),
        ("star-rating Three", "3", None), ("rating-4", "4", None), ("stars45", "4.5", None),
        ("icon-star-4-5", "4.5", None), ("bubble_40", "4", None),
        ("rating rating--large rating-3", "3", None), ("a-icon a-star-4", "4", None),
        ("rating-four", "4", None), ("stars-10", "10", None), ("rating_3_of_5", "3", "5"),
        ("4.0/5.0", "4.0", "5"),
    ],
)  # fmt: skip
def test_a_rating_is_read_from_texts_and_names(text: str, value: str, best: str | None) -> None:
    assert typed_value(text, "rating") == Rating(Decimal(value), None if best is None else Decimal(best))


@pytest.mark.parametrize(
    "text",
    [
        "", "great", "6/5", "3 of 12 people", "2011", "-1", "4.5 4.5", "rating-80", "rating-40",
        "stars-5-5", "col-md-4", "rating-12345", "corporate-4", "width: 64px", "max-width:80%",
        "rating-3 stars-4", "lamp-4.jpg", "03/04/2011", "star-rating One Two", "4 of 5 and 3 of 5",
    ],
)  # fmt: skip
def test_what_is_no_certain_rating_is_none(text: str) -> None:
    assert typed_value(text, "rating") is None


@pytest.mark.parametrize(
    ("texts", "sources", "expected"),
    [
        (["4.5", "12", "1,234"], {"text"}, "number"), (["4.5 kg", "300 g"], {"text"}, "number"),
        (["45%"], (), "number"), (["950", "1 234"], (), "number"), (["1995", "2003"], (), "number"),
        (["-3"], (), "number"), (["$12.99", "$5"], {"text"}, "price"),
        (["1.234,56 €", "5 EUR"], (), "price"), (["from $5"], (), "price"),
        (["£5", "12.99 USD"], (), "price"), (["$5", "5"], (), "text"), (["US $5", "CHF 12.–"], (), "price"),
        (["2011-04-03", "2011-04-04T10:00:00Z"], (), "date"), (["03/04/2011", "3.4.2011"], (), "date"),
        (["3 May 2011", "May 4, 2011"], (), "date"), (["3. Mai 2011", "3 de abril de 2011"], (), "date"),
        (["Sun, 3 Apr 2011 10:30 GMT"], (), "date"), (["2011年4月3日"], (), "date"),
        (["12 Monkeys 1995"], (), "text"), (["http://a.example/x", "www.b.example"], {"text"}, "url"),
        (["/a", "b/c", "d.html"], {"@href"}, "url"), (["/a"], {"text"}, "text"),
        (["mailto:a@b.example"], {"@href"}, "url"), (["a.jpg"], {"@href"}, "url"),
        (["a.jpg", "/img?id=3"], {"@src"}, "image"), (["https://a.example/x.png"], {"@content"}, "image"),
        (["42", "7"], {"@href"}, "number"), (["stars-4.gif", "stars-4-5.gif"], {"@src"}, "rating"),
        (["star-rating Three", "star-rating One"], {"@class"}, "rating"),
        (["width:80%"], {"@style"}, "rating"), (["4.5 out of 5", "3 out of 5 stars"], {"text"}, "rating"),
        (["★★★★☆", "★"], {"text"}, "rating"), (["4/5", "3.5/5"], (), "rating"),
        (["Page 1 of 5", "Page 2 of 5"], {"text"}, "text"),
        (["Blade Runner 2049", "2012"], {"text"}, "text"), (["Apollo 13"], (), "text"),
        (["13 Assassins"], (), "text"), (["555-1234"], (), "text"),
        (["5551234567", "5559876543"], (), "text"), (["+49 30 123456"], (), "text"),
        (["555 123 456", "601 234 567"], (), "text"), (["9783161484100"], (), "text"),
        (["0306406152"], (), "text"), (["978-3-16-148410-0"], (), "text"), (["90210", "10115"], (), "text"),
        (["01907", "90210"], (), "text"), (["110 00"], (), "text"), (["560 001", "560 002"], (), "text"),
        (["A4"], (), "text"), (["1.234"], (), "text"), (["$5 off"], (), "text"), (["try 5"], (), "text"),
        (["10:30"], (), "text"), (["", " "], (), "text"), ([], (), "text"), (["12", ""], (), "number"),
        (["The 5-Star Hotel"], {"text"}, "text"), (["4th"], (), "text"), (["x" * 10_000], {"@src"}, "text"),
        (["red"], {"@class"}, "text"), (["yesterday"], (), "text"),
    ],
)  # fmt: skip
def test_the_type_that_texts_share(texts: list[str], sources: set[str], expected: ValueType) -> None:
    assert infer_type(texts, sources) == expected


TEXTS = st.one_of(
    st.text(max_size=80),
    st.text("0123456789.,'- /:%€$kMmayT{}", max_size=40),
    st.lists(
        st.sampled_from(
            ["3", "May", "2011", "de", "€", "1.234,5", "/", "★", "rating-", "of", "http://", ":30", " ", "pm"]
        ),
        max_size=8,
    ).map(" ".join),
)


@given(text=TEXTS, kind=st.sampled_from(get_args(ValueType)), base=st.sampled_from(["", BASE, "http://["]))
@example("3 {day} 2011", "date", "")
@example("\ud800 5", "url", BASE)
@example("3 ² 2011", "date", "")
@example("9" * 200, "number", "")
def test_no_text_makes_it_raise(text: str, kind: ValueType, base: str) -> None:
    value = typed_value(text, kind, base, {"href": text, "src": text})
    json.dumps(to_plain(value))
    infer_type([text], {"@src"})
    infer_type([text])
    order_of_dates([text])


@given(number=st.decimals(min_value=0, max_value=10**9, places=2))
def test_numbers_written_in_any_of_three_ways_come_back(number: Decimal) -> None:
    english = f"{number:,.2f}"
    german = english.translate(str.maketrans(",.", ".,"))
    french = english.replace(",", "\u202f").replace(".", ",")
    for text in (english, german, french):
        assert typed_value(text, "number") == number
        assert typed_value(f"{text} €", "price") == Price(number, "EUR")


@given(day=st.dates(dt.date(1000, 1, 1), dt.date(2199, 12, 31)))
def test_dates_come_back(day: dt.date) -> None:
    for text in (day.isoformat(), f"{day.day}.{day.month}.{day.year}", f"{day:%B} {day.day}, {day.year}"):
        assert typed_value(text, "date") == day


@pytest.mark.parametrize(
    "character", [" ", "1", ".", "1,", "1 ", "a", "a ", "3-", "(", "★", "%", "/", "star", "1:"]
)
def test_long_texts_take_no_long_time(character: str) -> None:
    text = character * 20_000
    start = time.process_time()
    for kind in get_args(ValueType):
        typed_value(text, kind, BASE, {"href": text})
    infer_type([text], {"@src"})
    infer_type([text])
    for length in (60, 200, 300):
        infer_type([text[:length] + "!"])
        typed_value(text[:length] + "!", "rating")
        typed_value(text[:length] + "!", "number")
    assert time.process_time() - start < 5  # what goes back and forth over such a text takes minutes


@pytest.mark.parametrize(("kind", "module"), [("price", "price_parser"), ("date", "dateparser")])
def test_without_the_extra_only_prices_and_dates_fail(
    kind: ValueType, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not lacks_extra(kind)
    monkeypatch.setitem(sys.modules, module, None)
    assert lacks_extra(kind)
    with pytest.raises(MissingExtra, match=r"Typed (prices|dates) needs the extra 'values'"):
        typed_value("12.99", kind)
    assert typed_value("12.99", "number") == Decimal("12.99")
    assert infer_type(["$12.99"]) == "price"
    assert infer_type(["3 May 2011"]) == "date"


def test_values_have_a_plain_form() -> None:
    assert to_plain(Decimal("12.990")) == "12.990"
    assert to_plain(Decimal("1E+3")) == "1000"
    assert to_plain(Price(Decimal("12.99"), "USD")) == {"amount": "12.99", "currency": "USD"}
    assert to_plain(dt.date(2011, 4, 3)) == "2011-04-03"
    assert to_plain(dt.datetime(2011, 4, 3, 10, 11, tzinfo=dt.UTC)) == "2011-04-03T10:11:00+00:00"
    assert to_plain(Image("https://a.example/x.jpg", None)) == {"url": "https://a.example/x.jpg", "alt": None}
    assert to_plain(Rating(Decimal("4.5"), None)) == {"value": "4.5", "best": None}
    assert to_plain(Rating(Decimal(80), Decimal(100))) == {"value": "80", "best": "100"}
    assert to_plain("https://a.example/") == "https://a.example/"
    assert to_plain(None) is None
