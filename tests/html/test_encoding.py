"""Pages are read in the encoding that a browser reads them in."""

from __future__ import annotations

import codecs
import time

import pytest
import webencodings
from hypothesis import example, given
from hypothesis import strategies as st

from siteloom.html.encoding import declared_encoding, decode
from siteloom.html.visible_text import visible_text
from tests.html.html_bytes import html_bytes
from tests.html.trees import tree

JAPANESE = "日本語のページ"
META_SHIFT_JIS = b"<meta charset=shift_jis>"

# Labels of the encoding standard and what they mean, in Python's words.
LABELS = {
    "big5hkscs": "big5 big5-hkscs cn-big5 csbig5 x-x-big5",
    "cp1250": "cp1250 windows-1250 x-cp1250",
    "cp1251": "cp1251 windows-1251 x-cp1251",
    "cp1252": "ascii us-ascii iso-8859-1 iso8859-1 latin1 l1 cp1252 windows-1252 ISO-8859-1",
    "cp1254": "iso-8859-9 latin5 windows-1254",
    "cp874": "tis-620 windows-874 iso-8859-11",
    "cp932": "shift_jis shift-jis sjis x-sjis windows-31j ms_kanji Shift_JIS",
    "cp949": "euc-kr ks_c_5601-1987 ksc5601 korean windows-949",
    "euc_jp": "euc-jp x-euc-jp",
    "gb18030": "gb2312 gb_2312-80 gbk x-gbk gb18030 chinese",
    "iso2022_jp": "iso-2022-jp csiso2022jp",
    "iso8859-15": "iso-8859-15 l9",
    "iso8859-2": "iso-8859-2 latin2 l2",
    "iso8859-7": "iso-8859-7 greek",
    "iso8859-8": "iso-8859-8 iso-8859-8-i hebrew logical visual",
    "koi8-r": "koi8-r koi8 koi",
    "koi8-u": "koi8-u koi8-ru",
    "mac-roman": "macintosh mac x-mac-roman",
    "utf-8": "utf-8 utf8 UTF-8 unicode-1-1-utf-8",
}


def meta(label: str) -> bytes:
    return f'<meta charset="{label}">'.encode()


def same_codec(one: str | None, other: str) -> bool:
    return one is not None and codecs.lookup(one).name == codecs.lookup(other).name


@pytest.mark.parametrize(
    ("codec", "label"), [(codec, name) for codec in LABELS for name in LABELS[codec].split()]
)
def test_a_label_means_what_the_encoding_standard_says(codec: str, label: str) -> None:
    assert same_codec(declared_encoding(meta(label)), codec)


@pytest.mark.parametrize(
    ("mark", "codec"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ],
)
@pytest.mark.parametrize("header", [None, "shift_jis", "utf-8", "windows-1252"])
def test_a_byte_order_mark_beats_the_http_header_and_the_meta(
    mark: bytes, codec: str, header: str | None
) -> None:
    page = mark + f"{META_SHIFT_JIS.decode()}<p>{JAPANESE}".encode(codec)
    assert decode(page, header) == f"{META_SHIFT_JIS.decode()}<p>{JAPANESE}"
    assert visible_text(tree(page, header)) == JAPANESE


def test_the_http_header_beats_the_meta() -> None:
    page = META_SHIFT_JIS + f"<p>{JAPANESE}".encode("euc_jp")
    assert visible_text(tree(page, "euc-jp")) == JAPANESE


def test_the_meta_beats_what_the_bytes_look_like() -> None:
    page = b"<meta charset=windows-1251><p>" + "Привет, é".encode()
    assert decode(page).endswith("Привет, é".encode().decode("cp1251"))


@pytest.mark.parametrize("header", ["", "   ", "no-such-encoding", "utf-32", "utf-7", "\x00", "\ud800"])
def test_an_unknown_http_charset_is_passed_over(header: str) -> None:
    page = META_SHIFT_JIS + JAPANESE.encode("cp932")
    assert visible_text(tree(page, header)) == JAPANESE


def test_an_unknown_meta_charset_is_passed_over_for_the_next() -> None:
    assert same_codec(declared_encoding(b"<meta charset=bogus>" + META_SHIFT_JIS), "cp932")


@pytest.mark.parametrize(
    ("codec", "label", "text"),
    [
        ("cp932", "shift_jis", "髙橋①はﾊﾝｶｸ"),
        ("gbk", "gb2312", "中文網頁朱镕基"),
        ("cp949", "euc-kr", "한국어 똠방각하"),
        ("big5", "big5", "繁體中文網頁"),
        ("euc_jp", "euc-jp", JAPANESE),
        ("iso2022_jp", "iso-2022-jp", JAPANESE),
        ("koi8_r", "koi8-r", "Привет"),
        ("cp1251", "windows-1251", "Привет"),
        ("cp1252", "latin1", "€ “quoted” \u2014 café"),
        ("cp1252", "iso-8859-1", "€ “quoted” \u2014 café"),
        ("cp874", "tis-620", "ภาษาไทย…"),
        ("iso8859_7", "iso-8859-7", "Ελληνικά"),
    ],
)
@pytest.mark.parametrize("where", ["header", "meta", "http-equiv"])
def test_the_parser_sees_the_text_of_an_old_encoding(codec: str, label: str, text: str, where: str) -> None:
    equivalent = f'<META content="text/html; charset={label}" http-equiv=Content-Type>'
    declaration = {"header": b"", "meta": meta(label), "http-equiv": equivalent.encode()}[where]
    page = b"<html><head>" + declaration + b"<title>x</title><p>" + text.encode(codec)
    root = tree(page, label if where == "header" else None)
    assert visible_text(root) == text
    assert root.xpath("string(//p)") == text


@pytest.mark.parametrize("label", ["utf-16", "utf-16le", "utf-16be"])
def test_a_meta_that_claims_utf_16_means_utf_8(label: str) -> None:
    assert visible_text(tree(meta(label) + JAPANESE.encode())) == JAPANESE


@pytest.mark.parametrize(
    "html",
    [
        b"<meta charset=shift_jis>",
        b"<META CHARSET = 'Shift_JIS' >",
        b"<meta/charset=shift_jis>",
        b"<meta charset=shift_jis/>"[:-2] + b" />",
        b"<meta content='a>b' charset=shift_jis>",
        b"<meta charset=shift_jis charset=utf-8>",
        b"<meta http-equiv=content-type content='text/html;charset=\"shift_jis\"'>",
        b"<meta content='text/html; charset = shift_jis; x' http-equiv='Content-Type'>",
        b"<!-- <meta charset=utf-8> --><meta charset=shift_jis>",
        b"<!--><meta charset=shift_jis>-->",
        b"<script>'<meta charset=utf-8>'</script><meta charset=shift_jis>",
        b"<title>" + b"x" * 10_000 + b"</title><meta charset=shift_jis>",
        b"<?xml version='1.0' encoding='shift_jis'?><html>",
        b"<?xml version='1.0' encoding='utf-8'?><html><meta charset=shift_jis>",
    ],
)
def test_a_declaration_counts_in_all_its_spellings(html: bytes) -> None:
    assert same_codec(declared_encoding(html), "cp932")


@pytest.mark.parametrize(
    "html",
    [
        b"",
        b"<p>charset=shift_jis",
        b"<!-- <meta charset=shift_jis> -->",
        b"<!-- <meta charset=shift_jis>",
        b"<title><meta charset=shift_jis></title>",
        b"<script><meta charset=shift_jis></script>",
        b"<a title='<meta charset=shift_jis>'>",
        b"<meta name=description content='charset=shift_jis'>",
        b"<meta data-charset=shift_jis>",
        b"<metadata charset=shift_jis>",
        b"</meta charset=shift_jis>",
        b"<meta charset=shift_jis",
        b"<meta charset=>",
        b"<meta charset=utf-7>",
        b"<p><?xml version='1.0' encoding='shift_jis'?>",
    ],
)
def test_what_is_no_declaration_does_not_count(html: bytes) -> None:
    assert declared_encoding(html) is None


@pytest.mark.parametrize(
    ("codec", "text"),
    [
        ("utf-8", "Ünïcödé 日本語"),
        ("utf-8", "plain"),
        ("cp932", "日本語のページです。東京は日本の首都であり、世界でも最大の都市のひとつです。" * 3),
        ("cp1251", "Москва является столицей России и крупнейшим городом страны." * 3),
        ("gb18030", "北京是中华人民共和国的首都。是全国的政治中心和文化中心。" * 3),
    ],
)
def test_an_undeclared_encoding_is_detected(codec: str, text: str) -> None:
    assert decode(f"<p>{text}</p>".encode(codec)) == f"<p>{text}</p>"


def test_bytes_that_do_not_fit_become_replacement_characters() -> None:
    assert decode(b"a\xffb", "utf-8") == "a\ufffdb"


KNOWN_LABELS = st.sampled_from(" ".join(LABELS.values()).split())
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=12)
ANY_LABEL = ANY_TEXT | KNOWN_LABELS | st.builds("{}{}{}".format, ANY_TEXT, KNOWN_LABELS, ANY_TEXT)


@given(html_bytes, st.none() | ANY_LABEL)
def test_any_bytes_under_any_label_give_text(html: bytes, label: str | None) -> None:
    assert isinstance(decode(html, label), str)


@given(ANY_LABEL)
@example("\ud800")
@example("utf-8\udfff")
@example("\u00a0utf-8")
def test_a_header_that_names_no_known_encoding_is_ignored(label: str) -> None:
    is_known = label.isascii() and webencodings.lookup(label) is not None
    page = META_SHIFT_JIS + JAPANESE.encode("cp932")
    assert is_known or decode(page, label) == decode(page)


@given(html_bytes, st.text(alphabet=st.characters(codec="ascii"), max_size=12))
def test_any_bytes_that_declare_any_label_give_text(html: bytes, label: str) -> None:
    assert isinstance(decode(meta(label) + html), str)


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\ufeff"), max_size=50))
def test_text_in_utf_8_is_read_back_unchanged(text: str) -> None:
    assert decode(text.encode(), "utf-8") == text
    assert decode(text.encode()) == text


@pytest.mark.parametrize(
    "part", [b"<!--", b"<meta ", b"<meta charset=", b"<meta a='", b"<meta charset=x>", b"<?xml "]
)
def test_a_hostile_head_is_read_at_once(part: bytes) -> None:
    declared_encoding(b"<p>")
    start = time.process_time()
    declared_encoding(part * (1_000_000 // len(part)))
    assert time.process_time() - start < 1
