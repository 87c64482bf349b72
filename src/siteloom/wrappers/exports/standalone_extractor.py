"""Extract the records of a page by the rules of an exported wrapper, with lxml alone.

The code below the imports is copied into every exported Scrapy spider and web-poet page object, so it imports
nothing from siteloom and runs on Python 3.10.
"""

from __future__ import annotations

import copy
import functools
import math
import re
from typing import Any

from lxml import etree

SHAPES = ("price", "digits", "mixed", "words")


def records(wrapper: dict[str, Any], page: Any, page_signature: str = "") -> list[dict[str, list[str]]]:
    """Extract the records of a page, given as text or as the root of a tree: a list of texts per attribute.

    The signature helps if there are several layouts.
    """
    root = tree(page) if isinstance(page, str) else page
    if root is None:
        return []
    records_by_layout = [layout_records(wrapper, layout, root) for layout in wrapper["layouts"]]
    number = (
        likely_layout(wrapper["layouts"], records_by_layout, page_signature)
        if len(records_by_layout) > 1
        else 0
    )
    return [
        {name: list(values) for name, (values, _) in record.items()} for record in records_by_layout[number]
    ]


def fields(wrapper: dict[str, Any]) -> dict[str, bool]:
    """Return all attributes in order, and whether each may have several values."""
    is_multi_by_name: dict[str, bool] = {}
    for layout in wrapper["layouts"]:
        for name, attribute in layout["attributes"].items():
            is_multi_by_name[name] = is_multi_by_name.get(name, False) or attribute.get("multi", False)
    return is_multi_by_name


def item(wrapper: dict[str, Any], record: dict[str, list[str]]) -> dict[str, Any]:
    """Return a record with all attributes: a list where there may be several values, else a text or None."""
    return {
        name: record.get(name, []) if is_multi else next(iter(record.get(name, [])), None)
        for name, is_multi in fields(wrapper).items()
    }


# Values


def layout_records(wrapper: dict[str, Any], layout: dict[str, Any], root: Any) -> list[dict[str, Any]]:
    """Extract the records by the rules of one layout: the values of each attribute and their confidence."""
    rule = layout.get("records")
    if rule is None:
        return [record_in(wrapper, layout, root, None)]
    starts = select(rule["xpath"], root)
    if not starts and "fallback" in rule:
        starts = select(rule["fallback"], root)
    runs_on = rule.get("runs_on", False)
    ends = [*starts[1:], None]
    scopes = list(map(run_between, starts, ends)) if runs_on else starts
    candidates = [record_in(wrapper, layout, scope, scope, is_run=runs_on) for scope in scopes]
    return [record for record in candidates if len(record) >= rule.get("least", 1)]


def run_between(start: Any, following: Any) -> Any:
    """Copy a record that continues through the siblings of its first element into one element."""
    run = etree.Element("record")
    run.append(copy.deepcopy(start))
    for sibling in start.itersiblings():
        if sibling is following:
            break
        run.append(copy.deepcopy(sibling))
    return run


def record_in(
    wrapper: dict[str, Any], layout: dict[str, Any], scope: Any, record: Any, is_run: bool = False
) -> dict[str, Any]:
    """Extract the attributes that have values on a page, or in one record of it."""
    labels = layout.get("labels", [])
    record_values: dict[str, Any] = {}
    for name, attribute in layout["attributes"].items():
        shapes = attribute.get("shapes", SHAPES)

        def texts(rule: dict[str, Any], shapes: Any = shapes) -> list[str]:
            nodes = [
                (node, text)
                for node in select(rule["xpath"], scope)
                if (text := node_text(node)) not in labels and values_in(rule, text, shapes)
            ]
            if "scorer" in rule:
                nodes = chosen(rule["scorer"], nodes, record, is_run)
            return [value for _, text in nodes for value in values_in(rule, text, shapes)]

        rules = attribute["rules"]
        votes = [texts(voter) for voter in attribute.get("voters", [])]
        values: dict[str, int] = {}  # each with the number of its rule
        for number, rule in enumerate(rules):
            if attribute.get("multi") or not values:
                for value in texts(rule) if attribute.get("multi") else texts(rule)[:1]:
                    values.setdefault(value, number)
        if attribute.get("voters_step_in") and not values and len({vote[0] for vote in votes if vote}) == 1:
            values = {votes[0][0]: len(rules)} if all(votes) else {}
        if values:
            weights = wrapper.get("confidence")
            record_values[name] = values, certainty(attribute, values, votes, weights) if weights else None
    return record_values


def values_in(rule: dict[str, Any], text: str, shapes: Any = SHAPES) -> list[str]:
    """Cut the values out of the text of a node."""
    value_part = rule.get("part", {})
    if "pattern" in value_part:
        match = re.compile(value_part["pattern"]).search(text, 0, 5_000)
        text = match[0] if match else ""
    if value_part.get("left"):
        text = text.partition(value_part["left"])[2]
    if value_part.get("right"):
        text, separator, _ = text.partition(value_part["right"])
        text = text if separator else ""
    pieces = text.split(value_part["separator"]) if value_part.get("separator") else [text]
    return [value for piece in pieces if (value := piece.strip()) and shape(value) in shapes]


def shape(text: str) -> str:
    """Classify a text by its characters."""
    if not re.search("[0-9]", text):
        return "words"
    if re.search("[$€£¥]", text):
        return "price"
    return "mixed" if re.search("[a-zA-Z]", text) else "digits"


# Nodes

HIDDEN = {"head", "iframe", "noembed", "noframes", "noscript", "script", "style", "template"}
BREAKS = set(
    re.findall(
        "[a-z0-9]+",
        "address article aside blockquote body br button caption center dd details dialog dir div dl dt "
        "fieldset figcaption figure footer form frameset h1 h2 h3 h4 h5 h6 header hgroup hr html legend "
        "li listing main menu nav ol optgroup option p plaintext pre search section select summary table "
        "tbody td textarea tfoot th thead title tr ul xmp",
    )
)
# The blanks that XML does not recognize, and as many plain ones: expressions use them under these names.
VARIABLES = {
    "odd": (
        "\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
        "\u2028\u2029\u202f\u205f\u3000"
    ),
    "plain": " " * 19,
}


def select(expression: str, node: Any) -> list[Any]:
    """Return the nodes that an XPath selects."""
    nodes: list[Any] = compiled(expression)(node, **VARIABLES)
    return nodes


@functools.lru_cache(maxsize=1_024)
def compiled(expression: str) -> Any:
    """Compile an XPath."""
    return etree.XPath(expression)


def node_text(node: Any) -> str:
    """Return the text of a node; of an element, all visible text inside it. Runs of blanks become one."""
    return " ".join((node if isinstance(node, str) else "".join(seen(node))).split())


def seen(element: Any) -> Any:
    """Yield the visible texts inside an element, and a blank wherever a line ends."""
    walk = etree.iterwalk(element, events=("start", "end", "comment", "pi"))
    for event, node in walk:
        is_break = event in ("start", "end") and node.tag in BREAKS
        if is_break:
            yield " "
        if event == "start":
            if node.tag in HIDDEN and node is not element:
                walk.skip_subtree()
            else:
                yield node.text or ""
        elif node is not element:
            yield node.tail or ""


# A classifier that chooses among the nodes that a rule selects


def chosen(scorer: dict[str, Any], nodes: list[Any], record: Any, is_run: bool) -> list[Any]:
    """Return the most probable node, or all that are probable."""
    scores = [probability(scorer, text, *node_position(node, record, is_run)) for node, text in nodes]
    probable = [number for number, score in enumerate(scores) if score >= 0.5]
    if not scorer["takes_all"]:
        probable = sorted(probable, key=lambda number: -scores[number])[:1]
    return [nodes[number] for number in probable]


def probability(scorer: dict[str, Any], text: str, position: int, text_number: int, depth: int) -> float:
    """Return the probability that a node holds a value, by its position and the characters of its text."""
    length = len(text) or 1
    weak = {
        f"position {position}": 1.0,
        f"text-number {text_number}": 1.0,
        f"depth {depth}": 1.0,
        f"length {len(text).bit_length()}": 1.0,
        f"shape {shape(text)}": 1.0,
        "digits": sum(map(str.isdigit, text)) / length,
        "letters": sum(map(str.isalpha, text)) / length,
        "capitals": sum(map(str.isupper, text)) / length,
    }
    total = scorer["intercept"] + sum(weight * weak.get(name, 0.0) for name, weight in scorer["weights"])
    return 0.5 + 0.5 * math.tanh(total / 2)


def node_position(node: Any, record: Any, is_run: bool) -> tuple[int, int, int]:
    """Return the number of a node's element among its tag, of a text in its parent, and the depth."""
    element, text_number = node, 0
    if not etree.iselement(node):  # lxml's texts know where they stand
        element = node.getparent()
        if not node.is_attribute:
            texts = [node]
            if node.is_tail:
                texts += [child.tail for child in element.itersiblings(preceding=True)]
                element = element.getparent()
                texts.append(element.text)
            text_number = sum(bool(text and not text.isspace()) for text in texts)
    if is_run and element is record:
        return 0, text_number, 0
    position = 1
    if element is not record:
        position += sum(1 for _ in element.itersiblings(element.tag, preceding=True))
    depth = 1
    while element is not record and element.getparent() is not None:
        element = element.getparent()
        depth += not (is_run and element is record)
    return position, text_number, depth


# Layouts: which of several a page has


def likely_layout(
    layouts: list[dict[str, Any]], records_by_layout: list[list[dict[str, Any]]], page_signature: str
) -> int:
    """Return the number of the layout whose rules find most.

    Of equal ones, this is the first, which is the newest, unless pages of another are more like this one.
    """
    if any("records" in layout for layout in layouts):
        gains = [float(sum(map(len, records))) for records in records_by_layout]
    else:
        gains = [
            gain(layouts[0], records_by_layout[0][0], layout, layout_result[0])
            for layout, layout_result in zip(layouts, records_by_layout, strict=True)
        ]
    likely = [number for number, layout_result in enumerate(gains) if layout_result == max(gains)]
    signatures_by_layout: list[Any] = [layouts[number].get("signatures") for number in likely]
    if page_signature and all(signatures_by_layout):
        agreeing = [
            max(agreement(layout_result, page_signature) for layout_result in signatures)
            for signatures in signatures_by_layout
        ]
        if max(agreeing) >= agreeing[0] + 3:
            return likely[agreeing.index(max(agreeing))]
    return likely[0]


def agreement(known_signature: str, page_signature: str) -> int:
    """Count the bytes that a page's signature shares with a known one, in hexadecimal; `**` is any byte."""
    return sum(
        known_signature[position : position + 2] in ("**", page_signature[position : position + 2])
        for position in range(0, 16, 2)
    )


def gain(newest: dict[str, Any], new: dict[str, Any], earlier: dict[str, Any], old: dict[str, Any]) -> float:
    """Estimate how many more attributes an earlier layout gets right."""
    total = 0.0
    for name, attribute in newest["attributes"].items():
        if name in earlier["attributes"]:
            is_new, worth_of_new = worth(attribute, new.get(name))
            is_old, worth_of_old = worth(earlier["attributes"][name], old.get(name))
            if not (is_new and is_old):
                total += worth_of_old - worth_of_new
    return total


def worth(attribute: dict[str, Any], result: Any) -> tuple[bool, float]:
    """Return whether there are valid values, and the probability that the result is right."""
    if result is None:
        return False, 1 - attribute["filled"]
    values, sure = result
    return (False, 0.0) if any(is_odd(attribute.get("contract"), value) for value in values) else (True, sure)


CHARACTERS = {
    "digits": str.isdigit,
    "capitals": str.isupper,
    "small letters": str.islower,
    "blanks": str.isspace,
    "@": "@".__eq__,
    "/": "/".__eq__,
    "currency signs": "$€£¥".__contains__,
}


def is_odd(contract: dict[str, Any] | None, text: str) -> bool:
    """Return whether a value breaks the contract learned from the examples."""
    if contract is None:
        return False
    has = {name for name, is_one in CHARACTERS.items() if any(map(is_one, text))}
    return (
        not contract["shortest"] <= len(text) <= contract["longest"]
        or ("choices" in contract and text not in contract["choices"])
        or not has.issuperset(contract.get("always", []))
        or not has.isdisjoint(contract.get("never", []))
    )


def certainty(
    attribute: dict[str, Any], values: dict[str, int], votes: list[list[str]], weights: dict[str, float]
) -> float:
    """Return the probability that all values are right, by the scores of their rules and the votes."""
    rules = [*attribute["rules"], *attribute.get("voters", [])]
    voters = len(votes) or 1
    probabilities = []
    for value, number in values.items():
        is_voter = number >= len(attribute["rules"])
        agreeing = sum(value in vote for vote in votes) - is_voter
        is_expected = number == 0 or not attribute.get("multi")
        disagreeing = len(votes) - agreeing if is_expected else 0
        score = rules[number]["score"] + weights["several"] * (len(values) > 1)
        score += weights["agreeing"] * (agreeing / voters)
        score += weights["disagreeing"] * (disagreeing / voters)
        probabilities.append(round(1 / (1 + math.exp(-(weights["intercept"] + score))), 4))
    return min(probabilities)


# The tree of a page

ODD_BLANKS = {ord(blank): " " for blank in "\x0b\x0c\x1c\x1d\x1e\x1f"}  # XML cannot hold these
ODD_REFERENCE = re.compile(
    "&#(?:0*(?:1[12]|2[89]|3[01])(?![0-9])|[xX]0*(?:[bBcC]|1[c-fC-F])(?![0-9a-fA-F]));?"
)
DOCUMENT_END = re.compile("</(?:body|html)(?=[ \t\r\n/>])", re.IGNORECASE)
NOTHING = re.compile("[ \t\r\n]+|</(?:body|html)[ \t\r\n]*>|<!--.*?-->|(<!--.*)", re.IGNORECASE | re.DOTALL)
TAG = re.compile("<(?:!--|[!?]|/(?![a-zA-Z])|(/?)([a-zA-Z][^ \t\r\n/>]*))")
COMMENT_END = re.compile("-?>|.*?(?:--!?>|\\Z)", re.DOTALL)
OTHER_END = re.compile("[^>]*>?")
BETWEEN_ATTRIBUTES = re.compile("[ \t\r\n/]*")
ATTRIBUTE = re.compile(
    "([^ \t\r\n/>][^ \t\r\n/>=]*)(?:[ \t\r\n]*=[ \t\r\n]*"
    "(\"[^\"]*(?:\"|\\Z)|'[^']*(?:'|\\Z)|(?![\"'])[^ \t\r\n>]*))?"
)
RAW_TEXT = {"iframe", "noembed", "noframes", "script", "style", "textarea", "title", "xmp"}


def tree(html: str) -> Any:
    """Parse a page as it was parsed for learning, and return its root; None if it has none."""
    html = ODD_REFERENCE.sub(" ", html.translate(ODD_BLANKS))
    end = DOCUMENT_END.search(html)
    if end and NOTHING.sub(r"\1", html[end.start() :]):
        html = without_document_ends(html)
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True)
    try:
        root = etree.fromstring(html.encode("utf-8", "replace"), parser)
    except etree.LxmlError:
        return None
    is_cut = any(entry.type == etree.ErrorTypes.ERR_RESOURCE_LIMIT for entry in parser.error_log)
    return None if is_cut else root


def without_document_ends(html: str) -> str:
    """Remove `</body>` and `</html>` if more follows, which libxml2 would otherwise drop."""
    pieces, kept_until = [], 0
    for start, end in document_ends(html):
        pieces.append(html[kept_until:start])
        kept_until = end
    pieces.append(html[kept_until:])
    return "</>".join(pieces) if "".join(pieces[1:]).strip(" \t\r\n") else html


def document_ends(html: str) -> list[tuple[int, int]]:
    """Return the ranges of the tags `</body>` and `</html>`, but not those in comments, scripts or quotes."""
    return [
        (start, end) for start, end, is_end, name in tags(html) if is_end and name.lower() in ("body", "html")
    ]


def tags(html: str) -> Any:
    """Yield the tags that a browser recognizes: start, end, whether it is an end tag, and name."""
    place = 0
    while (tag := TAG.search(html, place)) is not None:
        if tag[2] is None:
            place = end_of(COMMENT_END if tag[0] == "<!--" else OTHER_END, html, tag.end())
            continue
        place = tag_end(html, tag.end())
        is_end, name = bool(tag[1]), tag[2].lower()
        if place < 0:
            break
        yield tag.start(), place, is_end, tag[2]
        if not is_end and name == "plaintext":
            break
        if not is_end and name in RAW_TEXT:
            place = raw_text_end(html, place, name)


def end_of(pattern: re.Pattern[str], html: str, place: int) -> int:
    """Return where a match at a position ends, or the position itself if there is none."""
    match = pattern.match(html, place)
    return match.end() if match else place


def tag_end(html: str, place: int) -> int:
    """Return where a tag ends whose name ends at a position; -1 if it does not end."""
    while True:
        place = end_of(BETWEEN_ATTRIBUTES, html, place)
        if place == len(html):
            return -1
        if html[place] == ">":
            return place + 1
        place = end_of(ATTRIBUTE, html, place)


def raw_text_end(html: str, place: int, name: str) -> int:
    """Return where an element ends that holds raw text; a comment in a script may contain further scripts."""
    is_escaped = is_inside = False
    markers = re.compile(f"<!(?=--)|-->|</?{name}(?=[ \t\r\n/>])", re.IGNORECASE | re.ASCII)
    for marker in markers.finditer(html, place):
        if marker[0] == "-->":
            is_escaped = is_inside = False
        elif marker[0] == "<!":
            is_escaped = name == "script"
        elif marker[0][1] != "/":
            is_inside = is_inside or is_escaped
        elif is_inside:
            is_inside = False
        else:
            return marker.start()
    return len(html)
