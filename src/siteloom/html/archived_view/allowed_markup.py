"""The elements, attributes and SVG drawings that the archived view keeps.

Anything not listed here is shown as an element without meaning, or not at all, so that future features of
browsers are harmless, too.
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
"""The elements of HTML, including obsolete ones, that only show something."""

CUSTOM_ELEMENT = re.compile("[a-z][a-z0-9_.]*-[a-z0-9_.-]*")
"""Names of custom elements, which without scripts are mere boxes."""

UNSEEN = NOT_CONTENT - {"style"} | FRAMES - {"iframe"} | {"base", "basefont", "bgsound", "meta", "param"}
"""Elements that are never visible, and whose content is left out."""

FRAMED = frozenset({"embed", "frame", "iframe"})
"""Elements that show another document; they are replaced by a box of their size."""

CONTROLS = frozenset({"button", "fieldset", "input", "output", "select", "textarea"})
"""Elements that would belong to the form around them."""

PLAIN_ATTRIBUTES = frozenset(
    # of any element
    "class dir id hidden lang popover role style title "
    # of texts, lists, tables
    "abbr align axis bgcolor border bordercolor cellpadding cellspacing char charoff cite clear color cols "
    "colspan compact datetime face frame headers height hspace noshade nowrap reversed rows rowspan rules "
    "scope size span start summary valign vspace width wrap "
    # of the whole page
    "alink bottommargin leftmargin link marginheight marginwidth rightmargin text topmargin vlink "
    # of forms, and of elements that can be unfolded
    "alt checked disabled high label low max maxlength min multiple open optimum pattern placeholder "
    "readonly selected step value".split()
)
"""Attributes that determine how an element looks."""

NAMED_FREELY = re.compile("(?:aria|data)-(?!siteloom)[a-z0-9_.-]*")
"""Attributes with names chosen by sites, which stylesheets may select by."""

TYPED = frozenset({"li", "ol", "ul"})
"""Elements whose type determines how they look."""

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

MIRRORED_ATTRIBUTES = ("content", "href", "src")
"""Attributes that are not kept but may be values: their text is copied to `data-siteloom-` attributes."""

BREAKS_OUT = frozenset(
    "blockquote body center dd div dl dt form h1 h2 h3 h4 h5 h6 head hr img li ol p pre table ul".split()
)
"""Elements that end a drawing in a browser; in lxml, the rest of the page may be inside an unclosed one."""


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
"""The elements of drawings: the parser's lower-case names and the correct ones."""

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
"""The attributes of drawings: the parser's lower-case names and the correct ones."""

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


# Browsers copy elements for `use`, and a page may request copies without end; icons have few elements.
_MOST_COPIES = 50_000


def broken_out_of(root: Element) -> set[Element]:
    """Return the elements that contain something not allowed in a drawing; an `svg` among them is not one."""
    if root.find(".//svg") is None:
        return set()
    return _ancestors_of(root.iter(*BREAKS_OUT), "foreignobject")


def reference(element: Element) -> str | None:
    """Return the reference of an element of a drawing."""
    return element.get("href", element.get("xlink:href"))


def copyable_uses(root: Element) -> set[Element]:
    """Return the `use` elements whose copies may be drawn: no copies of copies, and not too many."""
    uses = list(root.iter("use"))
    if not uses:
        return set()
    copies = _ancestors_of(uses) | set(uses)
    by_id: dict[str, Element] = {}
    for element in root.iter(etree.Element):
        by_id.setdefault(element.get("id") or "", element)
    copyable: set[Element] = set()
    copies_left = _MOST_COPIES
    for use in uses:
        copied = by_id.get((reference(use) or "").removeprefix("#"))
        if copied is None or copied in copies:
            continue
        copies_left -= sum(1 for _ in islice(copied.iter(), copies_left + 1))
        if copies_left < 0:
            break
        copyable.add(use)
    return copyable


def _ancestors_of(elements: Iterable[Element], end: str = "") -> set[Element]:
    """Return all ancestors of the elements, up to an element named `end`."""
    ancestors: set[Element] = set()
    for element in elements:
        ancestor = element.getparent()
        while ancestor is not None and ancestor not in ancestors and ancestor.tag != end:
            ancestors.add(ancestor)
            ancestor = ancestor.getparent()
    return ancestors
