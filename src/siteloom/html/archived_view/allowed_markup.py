"""Which elements, attributes and SVG drawings the view keeps.

Whatever is not named here is shown as an element that means nothing, or not at all: what browsers learn
in the years to come is harmless, too.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final

from lxml import etree

from siteloom.html.visible_text import FRAMES, NOT_CONTENT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from siteloom.html.parser import Element


XHTML: Final = "http://www.w3.org/1999/xhtml"
SVG: Final = "http://www.w3.org/2000/svg"
MATHML: Final = "http://www.w3.org/1998/Math/MathML"

HTML_ELEMENTS = frozenset(
    "a abbr acronym address area article aside audio b bdi bdo big blockquote body br button caption center "
    "cite code col colgroup data datalist dd del details dfn dialog dir div dl dt em fieldset figcaption "
    "figure font footer form h1 h2 h3 h4 h5 h6 head header hgroup hr html i img input ins kbd label legend "
    "li listing main map mark menu meter nav nobr ol optgroup option output p picture plaintext pre progress "
    "q rb rp rt rtc ruby s samp search section select small source span strike strong style sub summary sup "
    "table tbody td textarea tfoot th thead time title tr track tt u ul var video wbr xmp".split()
)
"""The elements of HTML, old ones as well, that do nothing but show something."""

CUSTOM_ELEMENT = re.compile("[a-z][a-z0-9_.]*-[a-z0-9_.-]*")
"""Names that sites give to elements of their own: without scripts, these are mere boxes."""

UNSEEN = NOT_CONTENT - {"style"} | FRAMES - {"iframe"} | {"base", "basefont", "bgsound", "meta", "param"}
"""Elements of which nothing is ever seen, and whose content is left out."""

FRAMED = frozenset({"embed", "frame", "iframe"})
"""Elements that show another document; a box of their size stands for them."""

CONTROLS = frozenset({"button", "fieldset", "input", "output", "select", "textarea"})
"""What would belong to a form that it stands in."""

PLAIN_ATTRIBUTES = frozenset(
    # of any element
    "class dir id hidden lang popover role style title "
    # of texts, lists, tables
    "abbr align axis bgcolor border bordercolor cellpadding cellspacing char charoff cite clear color cols "
    "colspan compact datetime face frame headers height hspace noshade nowrap reversed rows rowspan rules "
    "scope size span start summary valign vspace width wrap "
    # of the whole page
    "alink bottommargin leftmargin link marginheight marginwidth rightmargin text topmargin vlink "
    # of forms, and of what can be unfolded
    "alt checked disabled high label low max maxlength min multiple open optimum pattern placeholder "
    "readonly selected step value".split()
)
"""Attributes that say what an element looks like."""

NAMED_FREELY = re.compile("(?:aria|data)-(?!siteloom)[a-z0-9_.-]*")
"""Attributes whose names sites may choose, and stylesheets select by."""

TYPED = frozenset({"li", "ol", "ul"})
"""Elements whose type is how they look."""

INPUT_TYPES = frozenset(
    "button checkbox color date datetime-local email hidden image month number radio range reset search "
    "submit tel text time url week".split()
)
"""Kinds of input fields; others, such as those for passwords and files, are shown as fields for text."""

ADDRESS_ATTRIBUTES = {
    "body": "background",
    "img": "src",
    "input": "src",
    "table": "background",
    "tbody": "background",
    "td": "background",
    "tfoot": "background",
    "th": "background",
    "thead": "background",
    "tr": "background",
    "video": "poster",
}
"""The attribute of an element whose address is loaded at once, and shown as an image."""

TOLD_ATTRIBUTES = ("content", "href", "src")
"""Attributes that are not shown as they are but may be values: what they say is told beside."""

BREAKS_OUT = frozenset(
    "blockquote body center dd div dl dt form h1 h2 h3 h4 h5 h6 head hr img li ol p pre table ul".split()
)
"""Elements that end a drawing for a browser; for lxml, the rest of the page may stand in one never closed."""


def _by_lower_case(names: str) -> dict[str, str]:
    return {name.lower(): name for name in names.split()}


SVG_ELEMENTS = _by_lower_case(
    "a circle clipPath defs desc ellipse feBlend feColorMatrix feComponentTransfer feComposite "
    "feConvolveMatrix feDiffuseLighting feDisplacementMap feDistantLight feDropShadow feFlood feFuncA "
    "feFuncB feFuncG feFuncR feGaussianBlur feMerge feMergeNode feMorphology feOffset fePointLight "
    "feSpecularLighting feSpotLight feTile feTurbulence filter foreignObject g image line linearGradient "
    "marker mask path pattern polygon polyline radialGradient rect stop style svg switch symbol text "
    "textPath title tspan use view"
)
"""The elements of drawings, as the parser writes them and as they are called."""

SVG_ATTRIBUTES = _by_lower_case(
    "alignment-baseline amplitude azimuth baseFrequency baseline-shift bias class clip-path clip-rule "
    "clipPathUnits color color-interpolation color-interpolation-filters cx cy d diffuseConstant "
    "direction display divisor dominant-baseline dx dy edgeMode elevation exponent fill fill-opacity "
    "fill-rule filter filterUnits flood-color flood-opacity font-family font-size font-size-adjust "
    "font-stretch font-style font-variant font-weight fr fx fy gradientTransform gradientUnits height id "
    "image-rendering in in2 intercept k1 k2 k3 k4 kernelMatrix kernelUnitLength lang lengthAdjust "
    "letter-spacing lighting-color limitingConeAngle marker-end marker-mid marker-start markerHeight "
    "markerUnits markerWidth mask maskContentUnits maskUnits mode numOctaves offset opacity operator order "
    "orient overflow paint-order pathLength patternContentUnits patternTransform patternUnits pointer-events "
    "points pointsAtX pointsAtY pointsAtZ preserveAlpha preserveAspectRatio primitiveUnits r radius refX "
    "refY result role rotate rx ry scale seed shape-rendering slope spacing specularConstant "
    "specularExponent spreadMethod startOffset stdDeviation stitchTiles stop-color stop-opacity stroke "
    "stroke-dasharray stroke-dashoffset stroke-linecap stroke-linejoin stroke-miterlimit stroke-opacity "
    "stroke-width style surfaceScale tableValues targetX targetY text-anchor text-decoration "
    "text-rendering textLength transform transform-origin type unicode-bidi values vector-effect version "
    "viewBox visibility width word-spacing writing-mode x x1 x2 xChannelSelector y y1 y2 yChannelSelector "
    "z"
)
"""The attributes of drawings, as the parser writes them and as they are called."""

MATHML_ELEMENTS = _by_lower_case(
    "annotation math menclose merror mfenced mfrac mi mlabeledtr mmultiscripts mn mo mover mpadded mphantom "
    "mprescripts mroot mrow ms mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover "
    "none semantics"
)
"""The elements of formulas."""

MATHML_ATTRIBUTES = _by_lower_case(
    "accent accentunder class close columnalign columnlines columnspacing columnspan depth dir display "
    "displaystyle fence frame framespacing height id lang linethickness lspace mathbackground mathcolor "
    "mathsize mathvariant maxsize minsize movablelimits notation open role rowalign rowlines rowspacing "
    "rowspan rspace scriptlevel separator separators stretchy style symmetric voffset width"
)
"""The attributes of formulas."""


# Browsers copy what is drawn again, and a page may ask for copies without end; icons have few elements.
_MOST_COPIES = 50_000


def broken_out_of(root: Element) -> set[Element]:
    """The elements with something inside that cannot stand in a drawing: an `svg` among them is none."""
    if root.find(".//svg") is None:
        return set()
    return _holders(root.iter(*BREAKS_OUT), "foreignobject")


def reference(element: Element) -> str | None:
    """What an element of a drawing refers to."""
    return element.get("href", element.get("xlink:href"))


def drawn_again(root: Element) -> set[Element]:
    """The `use` elements of which copies may be drawn: not those of copies, and of all not too many."""
    uses = list(root.iter("use"))
    if not uses:
        return set()
    copies = _holders(uses) | set(uses)
    by_id: dict[str, Element] = {}
    for element in root.iter(etree.Element):
        by_id.setdefault(element.get("id") or "", element)
    found: set[Element] = set()
    left = _MOST_COPIES
    for use in uses:
        copied = by_id.get((reference(use) or "").removeprefix("#"))
        if copied is None or copied in copies:
            continue
        left -= sum(1 for _ in islice(copied.iter(), left + 1))
        if left < 0:
            break
        found.add(use)
    return found


def _holders(elements: Iterable[Element], end: str = "") -> set[Element]:
    """All that elements stand in, up to an element called `end`."""
    found: set[Element] = set()
    for element in elements:
        above = element.getparent()
        while above is not None and above not in found and above.tag != end:
            found.add(above)
            above = above.getparent()
    return found
