"""Read dates in many languages, and decide the order of ambiguous days and months.

The clock is not used: texts that depend on today's date ("yesterday", "3 May") are not dates.
"""

from __future__ import annotations

import datetime as dt
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from siteloom.core.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Iterable


# ruff: noqa: RUF001 - signs and letters that look like others are what is read here


# As written in dates. Croatian is included for its contradictions: its `listopada` is October, the Polish one
# November, so the word is ambiguous.
_NAMES = """
    january february march april may june july august september october november december
    januar februar märz april mai juni juli august september oktober november dezember
    jänner feber maerz april mai juni juli august september oktober november dezember
    janvier février mars avril mai juin juillet août septembre octobre novembre décembre
    janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre
    enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
    gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre
    janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro
    januari februari maart april mei juni juli augustus september oktober november december
    januari februari mars april maj juni juli augusti september oktober november december
    januar februar marts april maj juni juli august september oktober november december
    januar februar mars april mai juni juli august september oktober november desember
    stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia
    ledna února března dubna května června července srpna září října listopadu prosince
    leden únor březen duben květen červen červenec srpen září říjen listopad prosinec
    siječnja veljače ožujka travnja svibnja lipnja srpnja kolovoza rujna listopada studenoga prosinca
    января февраля марта апреля мая июня июля августа сентября октября ноября декабря
    ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık
"""


@lru_cache(maxsize=1)
def _months_by_name() -> dict[str, set[int]]:
    """Return the months that a name or its first three or more letters may stand for."""
    names: dict[str, set[int]] = {}
    for line in _NAMES.strip().splitlines():
        for month, name in enumerate(line.split(), start=1):
            for length in range(min(3, len(name)), len(name) + 1):
                names.setdefault(name[:length], set()).add(month)
    return names


def months_called(word: str) -> set[int]:
    """Return the months that a word in lower case may stand for: none, one or several."""
    return _months_by_name().get(word, set())


# ruff: noqa: RUF001 - signs and letters that look like others are what is read here


MAX_LENGTH = 60
MAX_WORDS = 8
"""A longer text is a sentence, on which dateparser would spend a long time."""

_ISO = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,6})?)?\s?(?:Z|[+-]\d\d:?\d\d)?)?", re.ASCII
)
_TIME = re.compile(
    r"""
    (?<![\d:.,/-]) (?:(?P<hour>\d{1,2})[:h](?P<minute>\d\d)(?::(?P<second>\d\d))?
    \s{0,2}(?P<half>[ap]\.?m\b\.?)? | (?P<hour12>\d{1,2})\s?(?P<half12>[ap]\.?m\b\.?))
    (?:\s?(?:uhr|h)\b)? (?:\s?(?P<zone>utc|gmt|z|[+-]\d\d:?\d\d)\b | \s(?-i:[A-Z]{3,4})$)? (?![\d:])
    """,
    re.VERBOSE | re.IGNORECASE,
)
_AROUND_TIME = re.compile(
    r"[\s,;|@•·–-]+(?:(?:at|um|à|kl\.?|ore|alle|às|as|o|om|a las|в)\s*)?$", re.IGNORECASE
)
_NUMERIC = re.compile(r"(\d{1,4})\s?([./-])\s?(\d{1,2})\s?\2\s?(\d{4}|\d\d)\.?")
_YEAR_FIRST = re.compile(
    r"(\d{4})\s?(?:[./-]|年|년)\s?(\d{1,2})\s?(?:[./-]|月|월)\s?(\d{1,2})\s?(?:日|일|\.)?"
)
_LABEL = re.compile(r"^[^\d:]{2,30}:\s*")  # "Published: 3 May 2011"
_WEEKDAY_BEHIND = re.compile(r"\s?\([^\W\d_]{1,12}\.?\)$")  # 2011年4月3日(日)
_WEEKDAY_BEFORE = re.compile(r"[^\W\d_]{2,12}\.?,?\s+")  # Fr, 03.04.2011
_NUMBERS = re.compile(r"\d+")
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th|er|º|ª)\b", re.IGNORECASE)
_WORDS = re.compile(r"[^\W\d_]+")
_SHORT_YEAR = re.compile(r"\d{1,2}\D+['’]?\d\d")
_DROPPED = str.maketrans("", "", "{}'’")
_BESIDE_MONTHS = frozenset(
    """
    of the de del di den der el le il a on г года
    monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri sat sun
    """.split()
)
_DURATIONS = frozenset(
    "second seconds minute minutes hour hours day days week weeks month months year years".split()
)

# Languages with many speakers. dateparser has two hundred: the more it tries, the more words become months.
_LANGUAGES = (
    "af ar az be bg bn bs ca cs da de el en es et eu fa fi fr gl he hi hr hu hy id is it ja ka kk ko lt lv "
    "mk mn ms nb nl nn pl pt ro ru sk sl sq sr sv sw ta th tl tr uk ur uz vi zh"
).split()

Day = dt.date | dt.datetime


class _Time(NamedTuple):
    time: dt.time
    date_text: str


def date(text: str, *, day_first: bool | None = None) -> Day | None:
    """Read the day in a text, with its time if it has one.

    `day_first` says how to read `03/04/2011`, which is otherwise ambiguous and gives None.
    """
    try:
        import dateparser  # noqa: F401, PLC0415 - an extra
    except ImportError as error:
        raise MissingExtra("Typed dates", "values") from error
    text = text.strip()
    return _date(text, day_first) if len(text) <= MAX_LENGTH else None


def order_of_dates(texts: Iterable[str]) -> bool | None:
    """Return whether dates like `03/04/2011` have the day first, as similar ones like `25/04/2011` show.

    None if none shows it, or if they contradict each other.
    """
    orders = {order for text in texts if (order := _order_of(text)) is not None}
    return orders.pop() if len(orders) == 1 else None


def _order_of(text: str) -> bool | None:
    match = _NUMERIC.search(text) if len(text) <= MAX_LENGTH else None
    if match is None or len(match[1]) > 2:
        return None
    first_number, second_number = int(match[1]), int(match[3])
    if first_number > 12 >= second_number:
        return True
    return False if second_number > 12 >= first_number else None


@lru_cache(maxsize=65_536)
def _date(text: str, day_first: bool | None) -> Day | None:
    if not _NUMBERS.search(text):
        return None
    try:
        if _ISO.fullmatch(text):
            return _iso(text)
        split = _split_time(text)
        day = _day(_LABEL.sub("", split.date_text if split else text, count=1), day_first)
        return day if day is None or split is None else dt.datetime.combine(day, split.time)
    except ValueError:  # there is no such day, or no such hour
        return None


def _iso(text: str) -> Day:
    if len(text) == len("2011-04-03"):
        return dt.date.fromisoformat(text)
    return dt.datetime.fromisoformat(text.replace(" ", "T", 1).replace(" ", ""))


def _split_time(text: str) -> _Time | None:
    """Split a text into its time and the remaining text; a text with two times later fails as a date."""
    match = _TIME.search(text)
    if match is None:
        return None
    text_before = _AROUND_TIME.sub("", text[: match.start()])
    text_after = text[match.end() :].strip(" \u00a0,;|-–")
    hour = int(match["hour"] or match["hour12"])
    day_half = (match["half"] or match["half12"] or "").lower()
    if day_half:
        if not 1 <= hour <= 12:
            raise ValueError(text)
        hour = hour % 12 + (12 if day_half.startswith("p") else 0)
    time = dt.time(hour, int(match["minute"] or 0), int(match["second"] or 0), tzinfo=_zone(match["zone"]))
    return _Time(time, f"{text_before} {text_after}".strip())


def _zone(name: str | None) -> dt.timezone | None:
    """Return the time zone if it is certain; other abbreviations are ambiguous, and give None."""
    if name is None:
        return None
    if name[0] not in "+-":
        return dt.UTC
    offset = dt.timedelta(hours=int(name[1:3]), minutes=int(name[-2:]))
    return dt.timezone(-offset if name[0] == "-" else offset)


def _day(text: str, day_first: bool | None) -> dt.date | None:
    text = _WEEKDAY_BEHIND.sub("", text.strip())
    for form in (text, _WEEKDAY_BEFORE.sub("", text, count=1)):
        if match := _YEAR_FIRST.fullmatch(form):
            return _checked(int(match[1]), int(match[2]), int(match[3]))
        if match := _NUMERIC.fullmatch(form):
            return _numeric(match, day_first)
    return _named_month(text)


def _numeric(match: re.Match[str], day_first: bool | None) -> dt.date | None:
    """Read dates like `03/04/2011`; with dots the day is first, otherwise the order must be known."""
    first_number, separator, second_number, year = match.groups()
    if len(first_number) > 2 or (len(year) == 2 and separator == "-"):  # 11-04-03 has three readings
        return None
    day, month = int(first_number), int(second_number)
    if separator != "." and day != month:
        if month > 12 or (day <= 12 and day_first is False):
            day, month = month, day
        elif day <= 12 and day_first is None:
            return None
    return _checked(full_year(year), month, day)


def full_year(year: str) -> int:
    """Complete a year of two digits as in POSIX: 69 to 99 are in the last century."""
    number = int(year)
    if len(year) > 2:
        return number
    return number + (1900 if number >= 69 else 2000)


def _checked(year: int, month: int, day: int) -> dt.date | None:
    """Return a day of the Gregorian calendar: the year 2554 of a Thai page is of another one."""
    return dt.date(year, month, day) if 1000 <= year < 2200 else None


def _named_month(text: str) -> dt.date | None:
    """Read a date with a word for its month, which needs exactly one day and one year."""
    text = _ORDINAL.sub("", text)
    numbers = list(_NUMBERS.finditer(text))
    if len(numbers) != 2:
        return None
    lengths = [len(number[0]) for number in numbers]
    if lengths[0] <= 2 and (lengths[1] == 4 or (lengths[1] == 2 and _SHORT_YEAR.fullmatch(text))):
        day, year = numbers
    elif lengths[0] == 4 and lengths[1] <= 2:
        year, day = numbers
    else:
        return None
    month = _month_in(_with_numbers(text, {day: "{day}", year: "2003"}))
    return None if month is None else _checked(full_year(year[0]), month, int(day[0]))


def _with_numbers(text: str, numbers: dict[re.Match[str], str]) -> str:
    """Replace the numbers of a text, so that all dates of a site have a few templates."""
    pieces = []
    end = 0
    for match in sorted(numbers, key=lambda match: match.start()):
        pieces += [text[end : match.start()].translate(_DROPPED), numbers[match]]
        end = match.end()
    return "".join([*pieces, text[end:].translate(_DROPPED)])


@lru_cache(maxsize=4096)
def _month_in(template: str) -> int | None:
    """Return the month named in a date whose day is `{day}` and whose year is 2003."""
    words = [word.lower() for word in _WORDS.findall(template.replace("{day}", "1"))]
    if not any(len(word) > 2 or not word.isascii() for word in words) or _DURATIONS.intersection(words):
        return None
    if len(template.split()) > MAX_WORDS:
        return None
    possible_months = [months_called(word) for word in words if word not in _BESIDE_MONTHS]
    if any(len(months) > 1 for months in possible_months):
        return None
    if len(possible_months) == 1 and possible_months[0]:
        return next(iter(possible_months[0]))
    # dateparser converts number words to numbers, so that "15 ET 2003" is January in Danish. Parsing with two
    # days, month first, detects that: a real month is the same with both.
    eleventh, twelfth = (_ask_dateparser(template.replace("{day}", str(day)), day) for day in (11, 12))
    return eleventh if eleventh == twelfth else None


def _ask_dateparser(text: str, day: int) -> int | None:
    try:
        parsed = _parser().get_date_data(text).date_obj
    except Exception:  # noqa: BLE001 - a fault of a library in one text must not end an extraction
        return None
    return parsed.month if parsed is not None and (parsed.year, parsed.day) == (2003, day) else None


@lru_cache(maxsize=1)
def _parser() -> Any:
    from dateparser.date import DateDataParser  # noqa: PLC0415 - an extra

    return DateDataParser(
        languages=_LANGUAGES,
        try_previous_locales=False,  # otherwise a value would depend on earlier ones
        settings={
            "STRICT_PARSING": True,
            "PARSERS": ["absolute-time"],
            "DATE_ORDER": "MDY",
            "PREFER_LOCALE_DATE_ORDER": False,
            "RELATIVE_BASE": dt.datetime(2000, 1, 1),  # noqa: DTZ001 - only keeps the clock out
        },
    )
