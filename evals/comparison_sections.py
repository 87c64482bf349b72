"""What is written around the figures of docs/evaluation.md; facts of the parts fill the gaps in it."""

from __future__ import annotations

from typing import Literal, NamedTuple

Name = Literal["learning", "healing", "text", "text-speed", "clustering", "titles", "join", "markup"]


class Section(NamedTuple):
    """A part of the page: its text, which of its measures have bars, and the command that measures it."""

    title: str
    text: str
    charted: tuple[str, ...]
    command: str


_EVAL = "python -m evals DATA --only comparison"
_BENCH = "python -m benchmarks DATA --only comparison"

DOCUMENT = f"""\
# Siteloom and what else there is

Side by side on the same pages: Siteloom, and what people would use instead. Made, with its charts, by

    make eval     # or the comparison alone: {_EVAL}
    make bench    # or the comparison alone: {_BENCH}

Each other program runs in a virtual environment of its own, which these commands make. All are given the same
pages and examples, and their answers are judged by the same rules; where there is a choice, they are used in
the way that serves them best. The best value of each row is bold. The first column is Siteloom as it is by
default. Seconds are CPU seconds, and differ from run to run; compare them within a row only. Nothing on this
page is typed in: the figures are kept in [comparison.json](evaluation/comparison.json).

## Where Siteloom is not best

{{losses}}

{{sections}}"""

PART = """\
## {title}

{text}

{chart}

{table}

{notes}

Measured on {measured} by `{command}`.
"""

SECTIONS: dict[Name, Section] = {
    "learning": Section(
        "Learning from a few examples",
        """\
{sites} sites of the SWDE data set (Hao et al., SIGIR 2011), two of each vertical, {attributes} attributes.
Of {pages} evenly spaced pages of a site every second one is for the learner: K of them are examples with
all true values. The others, {tests} a site, are for testing. *Strict*: a page is right if exactly the true
values were found. *First value*: it is right if the first one found is true. Both are F1 as in [how well
wrappers are learned](evaluation/wrappers.md), where all sites and Siteloom's other method are. *Nothing
found*: attributes of sites for which no value was found on any page.

AutoScraper gives its exact results. mlscraper learns each attribute by itself, and has {seconds} CPU
seconds for it; it takes values for regular expressions, and so does not find those with a `$` or
brackets. *Absolute XPath*: the paths that at least half of the examples agree on. *CSS by id and class*:
the one selector from the nearest id or class that does best on the examples, as people write them.
Siteloom also looks at the pages of the learner that are no examples; the others have no use for them.""",
        ("strict, K = 1", "strict, K = 3", "strict, K = 5"),
        _EVAL,
    ),
    "healing": Section(
        "Healing after a change",
        """\
{changes} seeded changes to the markup of a built-in site, met half a year later; only values that broke are
counted, {values} of them, on the same pages for all. Values are right if exactly the true texts were found.
Scrapling is used in two ways, both explained where [all of it](evaluation/change.md) is told: *as
documented* it has one saved element for a site; *at its best* one for every page, whatever its selector
finds. So at its best it can say nothing of pages that it has not seen before the change; Siteloom's
repaired rules are for all pages. An attribute that was removed cannot come back.""",
        ("all values",),
        _EVAL,
    ),
    "text": Section(
        "Main text",
        """\
{pages} pages of nine news sites in two eras, with the main text as a person marked it. Scores are those of
the words that are kept, means over pages. Siteloom has seen {seen} pages of each site, the page itself
among them, and hides from trafilatura what is template; *Siteloom, without template* is all but the
template, which is another task. [More of it](evaluation/text.md).""",
        ("F1", "precision", "recall"),
        _EVAL,
    ),
    "text-speed": Section(
        "Main text: time",
        """\
The {pages} pages of the section above. Siteloom counts what all pages of a site have in common, and then
cleans them; both are in its times. For main texts it runs trafilatura on pages without template.""",
        ("milliseconds a page",),
        _BENCH,
    ),
    "clustering": Section(
        "Clustering pages by template",
        """\
Pages of {sites} sites, mixed. Each found cluster is compared with the site that it shares most pages with;
precision and recall are means over clusters. `vertex`, the default, and `paths` are told the site of each
page; the others are not. Scikit-learn's methods cluster the path sets that Siteloom's `text-max` clusters,
by Jaccard distance; the thresholds are those at which they do well here. RTDM (Reis et al., WWW 2004) is
Siteloom's own implementation; there is none to install. Where there is no figure, it was not run, as it
takes too long. Seconds are those of features and clustering. `vertex` looks at eight bytes of a page, and
makes several clusters of a site whose pages differ. [More of it](evaluation/clustering.md).""",
        ("recall, {few} pages a site", "recall, {many} pages a site", "seconds, {many} pages a site"),
        _EVAL,
    ),
    "titles": Section(
        "Joining: which title is the same book's",
        """\
Four book shops, linked by ISBN. Each title of a shop is held against all titles of another shop that has
the book, too, and the most similar one is named: {titles} titles, of which {different} are written
differently there. Titles are folded alike for all. Siteloom joins from a similarity of .5 on by default,
and names nothing below; the others always name something. sparse_dot_topn is used as its documentation
shows, with grams of scikit-learn.""",
        ("right", "right, of those written differently", "right, of those named"),
        _EVAL,
    ),
    "join": Section(
        "Joining: time",
        """\
{texts} distinct texts of pages against {values} distinct true values, all folded. To be found are all pairs
with a cosine of weighted 3-grams of at least {threshold}: there are {pairs}. sparse_dot_topn is given
vectors with which it finds the very same pairs, if it may keep enough values of a text; the time to make
them is counted apart, as Siteloom's index is. RapidFuzz has another similarity, so that its recall and
precision say only how far it finds the same pairs; it was given {some} of the texts, and its time is scaled
up.""",
        ("seconds, all", "recall", "precision"),
        _BENCH,
    ),
    "markup": Section(
        "Parsing and extracting: time",
        """\
{pages} pages of {sites} sites, {megabytes} MB, up to {attributes} attributes. *The same paths*: one path
for each attribute, from the nearest id down by positions, as a browser's tools copy it; as XPath for lxml
and parsel, as CSS for selectolax, and as rules for Siteloom. From bytes to a dictionary of normalised
texts. Siteloom by default extracts with the rules that it learned from {examples} examples: several for
each attribute, with votes and confidence; it also finds out which wrapper a page is for, and makes a row
with the origin of each value. *Right* are values that are true ones.

selectolax parses with Lexbor, which is faster than libxml2, the parser of lxml. It has no XPath, and its
trees are those of HTML5, where the rows of a table, for one, stand in another element; so rules belong to
one of the two. Siteloom stays with the one that has XPath and XSLT, in which wrappers can be exported.""",
        ("milliseconds a page, parsed", "milliseconds a page, extracted", "right"),
        _BENCH,
    ),
}
