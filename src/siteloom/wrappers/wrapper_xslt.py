"""Export a wrapper as an XSLT 1.0 stylesheet, and a page as XML that any XSLT processor can read.

XSLT 1.0 has no regular expressions. Where a wrapper needs one, the stylesheet calls EXSLT's `regexp:match`,
which lxml supports with Python's own expressions and xsltproc does not; other stylesheets run anywhere.

The stylesheet outputs `<records><record><value attribute="name">Blue Fern</value>...`.
Values never contain a line end, so lists are passed as texts with one value per line. Lists are halved rather
than consumed from the front, because processors stop at about three thousand nested calls. A separator may
therefore split one text into at most that many parts.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from itertools import count
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from lxml import etree

from siteloom.core.errors import UsageError
from siteloom.html.visible_text import BREAKS, HIDDEN
from siteloom.wrappers.explanation import rule_words
from siteloom.wrappers.rule_features import CURRENCIES, DIGITS, LETTERS, SHAPES
from siteloom.wrappers.rule_xpath import BY_NAME, ODD_BLANKS, quote, record_xpath, rule_xpath, xml_characters
from siteloom.wrappers.value_from_node import SEARCH_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from siteloom.html.parser import Element
    from siteloom.wrappers.rule_features import AttributeRules, RecordRule, Rule, Shape
    from siteloom.wrappers.wrapper import Wrapper

_INSTEAD = "export it as xpath-json, scrapy or web-poet"

_STYLESHEET = """\
<?xml version="1.0"?>
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"{namespaces}>

  <xsl:output method="xml" encoding="UTF-8" indent="yes"/>

  <!-- What counts as a blank besides the blanks of XML. -->
  <xsl:variable name="odd" select="'{odd}'"/>
  <xsl:variable name="plain" select="'{plain}'"/>

  <!-- Texts that name values and never are values, one a line. -->
  <xsl:variable name="labels" select={labels}/>

{records}

{attributes}

  <!-- The values in a text, one a line. -->
  <xsl:template name="part">
    <xsl:param name="text"/>
    <xsl:param name="left"/>
    <xsl:param name="right"/>
    <xsl:param name="separator"/>
    <xsl:param name="shapes" select="'{shapes}'"/>
    <xsl:if test="not(contains($labels, concat('&#10;', $text, '&#10;')))">
      <xsl:variable name="begun" select="substring-after($text, $left)"/>
      <xsl:variable name="ended">
        <xsl:if test="$right"><xsl:value-of select="substring-before($begun, $right)"/></xsl:if>
        <xsl:if test="not($right)"><xsl:value-of select="$begun"/></xsl:if>
      </xsl:variable>
      <xsl:call-template name="split">
        <xsl:with-param name="text" select="string($ended)"/>
        <xsl:with-param name="separator" select="$separator"/>
        <xsl:with-param name="shapes" select="$shapes"/>
      </xsl:call-template>
    </xsl:if>
  </xsl:template>
{matched}
  <xsl:template name="split">
    <xsl:param name="text"/>
    <xsl:param name="separator"/>
    <xsl:param name="shapes"/>
    <xsl:choose>
      <xsl:when test="$separator and contains($text, $separator)">
        <xsl:call-template name="line">
          <xsl:with-param name="text" select="substring-before($text, $separator)"/>
          <xsl:with-param name="shapes" select="$shapes"/>
        </xsl:call-template>
        <xsl:call-template name="split">
          <xsl:with-param name="text" select="substring-after($text, $separator)"/>
          <xsl:with-param name="separator" select="$separator"/>
          <xsl:with-param name="shapes" select="$shapes"/>
        </xsl:call-template>
      </xsl:when>
      <xsl:otherwise>
        <xsl:call-template name="line">
          <xsl:with-param name="text" select="$text"/>
          <xsl:with-param name="shapes" select="$shapes"/>
        </xsl:call-template>
      </xsl:otherwise>
    </xsl:choose>
  </xsl:template>

  <!-- A value, if there is one and what it is made of is among the shapes. -->
  <xsl:template name="line">
    <xsl:param name="text"/>
    <xsl:param name="shapes"/>
    <xsl:variable name="shape">
      <xsl:choose>
        <xsl:when test="translate($text, '{digits}', '') = $text">words</xsl:when>
        <xsl:when test="translate($text, '{currencies}', '') != $text">price</xsl:when>
        <xsl:when test="translate($text, '{letters}', '') != $text">mixed</xsl:when>
        <xsl:otherwise>digits</xsl:otherwise>
      </xsl:choose>
    </xsl:variable>
    <xsl:if test="normalize-space($text) and contains($shapes, $shape)">
      <xsl:value-of select="concat(normalize-space($text), '&#10;')"/>
    </xsl:if>
  </xsl:template>

  <!-- Each different value of a list. -->
  <xsl:template name="values">
    <xsl:param name="attribute"/>
    <xsl:param name="lines"/>
    <xsl:param name="before" select="'&#10;'"/>
    <xsl:variable name="first" select="substring-before($lines, '&#10;')"/>
    <xsl:choose>
      <xsl:when test="not($lines)"/>
      <xsl:when test="string-length($first) + 1 = string-length($lines)">
        <xsl:if test="not(contains($before, concat('&#10;', $lines)))">
          <value attribute="{{$attribute}}"><xsl:value-of select="$first"/></value>
        </xsl:if>
      </xsl:when>
      <xsl:otherwise>
        <xsl:variable name="middle" select="floor(string-length($lines) div 2)"/>
        <xsl:variable name="half" select="concat(substring($lines, 1, $middle),
          substring-before(substring($lines, $middle + 1), '&#10;'), '&#10;')"/>
        <xsl:variable name="part">
          <xsl:choose>
            <xsl:when test="$half = $lines"><xsl:value-of select="concat($first, '&#10;')"/></xsl:when>
            <xsl:otherwise><xsl:value-of select="$half"/></xsl:otherwise>
          </xsl:choose>
        </xsl:variable>
        <xsl:call-template name="values">
          <xsl:with-param name="attribute" select="$attribute"/>
          <xsl:with-param name="lines" select="string($part)"/>
          <xsl:with-param name="before" select="$before"/>
        </xsl:call-template>
        <xsl:call-template name="values">
          <xsl:with-param name="attribute" select="$attribute"/>
          <xsl:with-param name="lines" select="substring($lines, string-length($part) + 1)"/>
          <xsl:with-param name="before" select="concat($before, $part)"/>
        </xsl:call-template>
      </xsl:otherwise>
    </xsl:choose>
  </xsl:template>

  <!-- What a person reads inside an element; line ends are blanks. -->
  <xsl:template mode="seen" match="{hidden}
      |comment()|processing-instruction()"/>
  <xsl:template mode="seen" match="{breaks}">
    <xsl:text> </xsl:text>
    <xsl:apply-templates mode="seen"/>
    <xsl:text> </xsl:text>
  </xsl:template>

</xsl:stylesheet>
"""

_NAMESPACES = """
    xmlns:regexp="http://exslt.org/regular-expressions" exclude-result-prefixes="regexp\""""

_MATCHED = """
  <!-- The same where a regular expression finds them. -->
  <xsl:template name="matched">
    <xsl:param name="text"/>
    <xsl:param name="pattern"/>
    <xsl:param name="separator"/>
    <xsl:param name="shapes" select="'{shapes}'"/>
    <xsl:if test="not(contains($labels, concat('&#10;', $text, '&#10;')))">
      <xsl:call-template name="split">
        <xsl:with-param name="text" select="string(regexp:match(substring($text, 1, {searched}), $pattern))"/>
        <xsl:with-param name="separator" select="$separator"/>
        <xsl:with-param name="shapes" select="$shapes"/>
      </xsl:call-template>
    </xsl:if>
  </xsl:template>
"""

_PAGE = """\
  <!-- A page is one record. -->
  <xsl:template match="/">
    <records>
      <record>
{calls}
      </record>
    </records>
  </xsl:template>"""

_LIST = """\
  <!-- A page is a list of records, each of which has values of {least}. -->
  <xsl:template match="/">
{starts}
    <records>
      <xsl:for-each select="$starts">
{variables}
        <xsl:if test={has_enough}>
          <record>
{copies}
          </record>
        </xsl:if>
      </xsl:for-each>
    </records>
  </xsl:template>"""

_STARTS = """\
    <xsl:variable name="starts" select={select}/>"""

_STARTS_OR_FALLBACK = """\
    <xsl:variable name="named" select={select}/>
    <!-- What takes their place where there are none. -->
    <xsl:variable name="starts" select={fallback}/>"""

_SINGLE = """\
    <xsl:if test="string($found)">
      <value attribute={name}><xsl:value-of select="substring-before($found, '&#10;')"/></value>
    </xsl:if>"""

_MULTI = """\
    <xsl:call-template name="values">
      <xsl:with-param name="attribute" select={name}/>
      <xsl:with-param name="lines" select="string($found)"/>
    </xsl:call-template>"""


def to_xslt(wrapper: Wrapper) -> str:
    """Return a stylesheet that outputs the records that the wrapper extracts.

    It runs on Siteloom's own trees; other processors need the XML that `tree_xml` writes.
    """
    if wrapper.earlier:
        raise UsageError(f"Which of several layouts a page has cannot be said in XSLT 1.0: {_INSTEAD}.")
    is_list = wrapper.record_rule is not None
    has_patterns = any(
        rule.part.pattern for rules in wrapper.attributes.values() for rule in _rules_that_count(rules)
    )
    attributes = (
        _attribute_template(number, name, rules, is_list)
        for number, (name, rules) in enumerate(wrapper.attributes.items(), start=1)
    )
    return _STYLESHEET.format(
        namespaces=_NAMESPACES if has_patterns else "",
        matched=_MATCHED.format(shapes=_named(SHAPES), searched=SEARCH_LIMIT) if has_patterns else "",
        odd="".join(f"&#{ord(blank)};" for blank in ODD_BLANKS),
        plain=" " * len(ODD_BLANKS),
        shapes=_named(SHAPES),
        digits=DIGITS,
        currencies=CURRENCIES,
        letters=LETTERS,
        labels=_in_attribute(quote("\n".join(["", *sorted(wrapper.labels), ""]))),
        records=_records_template(wrapper.record_rule, range(1, len(wrapper.attributes) + 1)),
        attributes="\n\n".join(attributes),
        hidden="|".join(sorted(HIDDEN)),
        breaks=_wrapped_pattern(sorted(BREAKS)),
    )


def _records_template(rule: RecordRule | None, attributes: Sequence[int]) -> str:
    calls = [f'<xsl:call-template name="attribute-{number}"/>' for number in attributes]
    if rule is None:
        return _PAGE.format(calls=_indented(calls, 8))
    if rule.runs_on:
        raise UsageError(
            "A list whose records run on through the siblings of their first element "
            f"cannot be said in XSLT 1.0: {_INSTEAD}."
        )
    named = _in_attribute(record_xpath(rule.features, BY_NAME))
    starts = _STARTS.format(select=named)
    if rule.fallback:
        fallback = f"$named | ({record_xpath(rule.fallback, BY_NAME)})[not($named)]"
        starts = _STARTS_OR_FALLBACK.format(select=named, fallback=_in_attribute(fallback))
    # Whether there is a value counts as 1 or 0. Nodes of a variable cannot be counted in XSLT 1.0.
    filled = " + ".join(f"boolean(string($values-{number}))" for number in attributes) or "0"
    return _LIST.format(
        least="any attribute" if rule.least <= 1 else f"at least {rule.least} attributes",
        starts=starts,
        variables=_indented(
            [
                f'<xsl:variable name="values-{number}">{call}</xsl:variable>'
                for number, call in zip(attributes, calls, strict=True)
            ],
            8,
        ),
        has_enough=_in_attribute(f"{filled} >= {rule.least}"),
        copies=_indented([f'<xsl:copy-of select="$values-{number}"/>' for number in attributes], 12),
    )


def _attribute_template(number: int, name: str, rules: AttributeRules, is_list: bool) -> str:
    is_multi = bool(rules.attribute.multi)
    for rule in _rules_that_count(rules):
        _refuse(rule, name)
    loops = [
        [f"<!-- {_comment(rule_words(rule, multi=is_multi))} -->", *_loop(rule, rules.shapes, is_list)]
        for rule in _rules_that_count(rules)
    ]
    if rules.do_voters_step_in:
        loops[len(rules.rules) :] = [[*_agreed_vote(loops[len(rules.rules) :])]]
    lines = _variable_of_all_rules(loops) if is_multi or len(loops) < 2 else _variable_of_first_result(loops)
    end = _MULTI.format(name=_in_attribute(quote(name))) if is_multi else _SINGLE.format(name=_plain(name))
    return "\n".join(
        [
            f"  <!-- {_comment(name)}: {'all values' if is_multi else 'the first value'} -->",
            f'  <xsl:template name="attribute-{number}">',
            *(f"    {line}" for line in lines),
            end,
            "  </xsl:template>",
        ]
    )


def _rules_that_count(rules: AttributeRules) -> tuple[Rule, ...]:
    """Return the rules of an attribute, followed by its voters if they may supply the value."""
    return (*rules.rules, *rules.voters) if rules.do_voters_step_in else rules.rules


def _variable_of_all_rules(loops: list[list[str]]) -> Iterator[str]:
    """Yield a variable with the results of all rules."""
    yield '<xsl:variable name="found">'
    yield from (f"  {line}" for loop in loops for line in loop)
    yield "</xsl:variable>"


def _variable_of_first_result(loops: list[list[str]]) -> Iterator[str]:
    """Yield a variable with the result of the first rule that finds anything; later ones do not run."""
    for number, loop in enumerate(loops, start=1):
        earlier = " or ".join(f"string($found-{earlier_number})" for earlier_number in range(1, number))
        yield f'<xsl:variable name="found-{number}">'
        if earlier:
            yield f'  <xsl:if test="not({earlier})">'
        yield from (f"{'    ' if earlier else '  '}{line}" for line in loop)
        if earlier:
            yield "  </xsl:if>"
        yield "</xsl:variable>"
    results = ", ".join(f"$found-{number}" for number in range(1, len(loops) + 1))
    yield f'<xsl:variable name="found" select="concat({results})"/>'


def _agreed_vote(loops: list[list[str]]) -> Iterator[str]:
    """Yield the first value that all voters agree on; voters after one that finds nothing do not run."""
    yield "<!-- No rule has found it: a value counts that all of these find. -->"
    for number, loop in enumerate(loops, start=1):
        yield f'<xsl:variable name="vote-{number}">'
        if number > 1:
            yield f'  <xsl:if test="string($vote-{number - 1})">'
        yield from (f"{'    ' if number > 1 else '  '}{line}" for line in loop)
        if number > 1:
            yield "  </xsl:if>"
        yield "</xsl:variable>"
    first_value, *further = (
        f"substring-before($vote-{number}, '&#10;')" for number in range(1, len(loops) + 1)
    )
    yield f'<xsl:if test="{" and ".join([first_value, *(f"{value} = {first_value}" for value in further)])}">'
    yield '  <xsl:value-of select="$vote-1"/>'
    yield "</xsl:if>"


def _loop(rule: Rule, shapes: Sequence[Shape], is_list: bool) -> Iterator[str]:
    """Yield a loop over the nodes that a rule selects, with the values of each."""
    yield f"<xsl:for-each select={_in_attribute(rule_xpath(rule, is_list, BY_NAME))}>"
    text = "."
    if rule.target == "element":
        yield '  <xsl:variable name="seen"><xsl:apply-templates mode="seen"/></xsl:variable>'
        text = "$seen"
    yield f'  <xsl:call-template name="{"matched" if rule.part.pattern else "part"}">'
    yield f'    <xsl:with-param name="text" select="normalize-space(translate({text}, $odd, $plain))"/>'
    value_part = rule.part
    for name, value in asdict(value_part).items():
        if value:
            yield f'    <xsl:with-param name="{name}" select={_in_attribute(quote(value))}/>'
    if set(shapes) != set(SHAPES):
        yield f'    <xsl:with-param name="shapes" select="{quote(_named(shapes))}"/>'
    yield "  </xsl:call-template>"
    yield "</xsl:for-each>"


def _refuse(rule: Rule, name: str) -> None:
    """Raise UsageError if a rule needs a classifier: XSLT 1.0 lacks the functions for it."""
    if rule.scorer is not None:
        raise UsageError(
            f"The attribute {name!r} is chosen by a classifier, which XSLT 1.0 does not know: {_INSTEAD}."
        )


def _named(shapes: Sequence[Shape]) -> str:
    """Join the names of shapes; no name is part of another."""
    return " ".join(shapes)


def _indented(lines: Iterable[str], blanks: int) -> str:
    return "\n".join(" " * blanks + line for line in lines)


def _in_attribute(expression: str) -> str:
    """Quote an XPath as the value of an XML attribute."""
    return quoteattr(expression)


def _plain(text: str) -> str:
    """Quote a text as an attribute value of the result, where unescaped braces would enclose expressions."""
    return quoteattr(xml_characters(text).replace("{", "{{").replace("}", "}}"))


def _comment(text: str) -> str:
    """Return a text that an XML comment can hold."""
    return re.sub("-(?=-|$)", "- ", xml_characters(text))


def _wrapped_pattern(tags: list[str]) -> str:
    rows = ["|".join(tags[start : start + 14]) for start in range(0, len(tags), 14)]
    return "\n      |".join(rows)


# Pages as XML

_START = (
    "A-Z_a-z\xc0-\xd6\xd8-\xf6\xf8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_NAME = re.compile(
    rf"(?:(?P<prefix>(?!xmlns:)[A-Za-z_][\w.-]*):)?[{_START}][{_START}0-9.\xb7\u0300-\u036f\u203f-\u2040-]*\Z",
    re.ASCII,
)
_NOT_IN_NAMES = re.compile(rf"[^{_START}0-9.-]|^[0-9.-]")


def tree_xml(root: Element) -> bytes:
    """Serialize a tree as XML that parses back into the same tree.

    Some details change, none of which a rule can refer to: characters that XML forbids become U+FFFD, or
    blanks if they are white space; comments and processing instructions become comments, with blanks between
    hyphens; attributes whose names XML forbids or that declare namespaces are left out; in names of elements,
    forbidden characters are written as codes, so a rule that names such a tag finds nothing. A prefix (`o:p`)
    gets a namespace, and its name stays. XML parsers refuse trees of more than 256 levels unless they are
    told otherwise (`xsltproc --huge`).
    """
    prefixes: set[str] = set()
    pieces = list(_pieces(root, prefixes))
    numbers = count(1)
    namespaces = "".join(
        f' xmlns:{prefix}="urn:siteloom:{next(numbers)}"' for prefix in sorted(prefixes - {"xml"})
    )
    pieces[0] += namespaces
    return "".join(pieces).encode()


def _pieces(root: Element, prefixes: set[str]) -> Iterator[str]:
    """Yield the markup piece by piece; the first piece is the root's tag, still open."""
    for event, node in etree.iterwalk(root, events=("start", "end", "comment", "pi")):
        if event == "start":
            yield f"<{_tag(str(node.tag), prefixes)}"
            yield "".join(_attributes(node, prefixes))
            yield f">{_escaped(node.text)}"
            continue
        if event == "end":
            yield f"</{_tag(str(node.tag), prefixes)}>"
        else:
            yield f"<!--{_comment(node.text or '')}-->"
        if node is not root:
            yield _escaped(node.tail)


def _tag(name: str, prefixes: set[str]) -> str:
    if match := _NAME.match(name):
        if prefix := match["prefix"]:
            prefixes.add(prefix)
        return name
    return _NOT_IN_NAMES.sub(lambda odd: f"_x{ord(odd[0]):X}_", name)


def _attributes(element: Element, prefixes: set[str]) -> Iterator[str]:
    for name, value in element.attrib.items():
        match = _NAME.match(name)
        if match is None or name == "xmlns" or match["prefix"] == "xml":
            continue
        if prefix := match["prefix"]:
            prefixes.add(prefix)
        yield f" {name}={quoteattr(xml_characters(value))}"


def _escaped(text: str | None) -> str:
    return escape(xml_characters(text), {"\r": "&#13;"}) if text else ""
