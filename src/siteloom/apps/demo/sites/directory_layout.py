"""The directory site's one look: panels, classes that say what stands in them, terse labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteloom.apps.demo.sites import vocabulary
from siteloom.apps.demo.sites.directory_content import ORIGIN, Entry, EntryList, EntryPage, district_path
from siteloom.apps.demo.sites.vocabulary import HTML5, joined, link, repeated, text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from siteloom.apps.demo.sites.fictional_places import Review

_STYLE = """
body{margin:0;font:15px/1.45 Verdana,Geneva,sans-serif;color:#222;background:#fff}
.ta-top{background:#24407a;color:#fff;padding:16px 24px} .ta-top a{color:#fff;margin-right:18px}
.ta-shell{display:flex} .ta-rail{width:190px;background:#f0f3fa;padding:16px;font-size:13px}
.ta-rail div{padding:3px 0} .ta-body{flex:1;padding:18px 28px;max-width:760px}
.ta-biz .fn{font-size:27px;font-weight:bold;color:#24407a} .ta-line{padding:5px 0}
.ta-line .lbl{display:inline-block;width:90px;color:#888;font-size:13px;vertical-align:top}
.ta-hours,.ta-tags{display:inline-block;list-style:none;margin:0;padding:0}
.ta-score{float:right;background:#24407a;color:#fff;padding:10px 14px;border-radius:6px}
.ta-also{border:1px solid #ccd6ea;margin:18px 0;padding:10px 16px;font-size:13px}
.ta-banner{background:#fbf1d5;text-align:center;padding:14px;margin:12px 0}
.ta-row{border-bottom:1px solid #ccd6ea;padding:10px 0} .ta-claimed{color:#2d7a34;font-size:12px}
.ta-say{border-top:1px dotted #ccd6ea;padding:6px 0;font-size:13px}
.ta-foot{background:#f0f3fa;padding:18px 24px;font-size:12px;color:#666}
""".strip()
_SCRIPT = """
(function(w,d){w.atlas={loaded:Date.now(),track:function(e){var i=new Image();
i.src="/px.gif?e="+encodeURIComponent(e)+"&t="+(Date.now()-w.atlas.loaded);}};
d.addEventListener("DOMContentLoaded",function(){w.atlas.track("ready");
var t=d.querySelectorAll(".tel");for(var i=0;i<t.length;i++){t[i].title="Tap to call";}});
})(window,document);
""".strip()
_LEGAL = (
    "TableAtlas lists places to eat and drink in towns large and small. Entries are sent in by"
    " owners and by the public and are checked by volunteers. We take no responsibility for a"
    " closed door or a cold soup. Scores are the mean of all votes cast in the last two years; a"
    " place with fewer than five votes has no score. Owners may claim their entry free of charge"
    " and correct it at any time."
)
_HELP_TOPICS = (
    "How scores work", "Claim your entry", "Report a closed place", "Suggest a place",
    "House rules", "Photographs", "For developers", "Change your password", "Delete your account",
    "Contact",
)  # fmt: skip


def render_entry(page: EntryPage) -> str:
    """The page of one entry."""
    entry = page.entry
    also_viewed = _also_viewed(page.also_viewed)
    return _document(
        title=f"{entry.name} in {entry.district}, {vocabulary.CITY} | TableAtlas",
        path=entry.path,
        body=joined(
            f'<div class="ta-banner">Sponsor: <b>{text(page.banner)}</b></div>' if page.banner else None,
            also_viewed if page.also_viewed_first else None,
            f'<div class="ta-biz" data-entry="{entry.path.split("/")[2]}">',
            f'<div class="ta-score">{entry.rating}</div>' if entry.rating else None,
            f'<div class="fn org">{text(entry.name)}</div>',
            '<div class="ta-claimed">&#10003; Claimed by the owner</div>' if page.is_claimed else None,
            _lines(entry),
            f'<div class="note">{"<br><br>".join(text(line) for line in entry.about)}</div>',
            _comments(entry.comments),
            "</div>",
            None if page.also_viewed_first else also_viewed,
        ),
    )


def render_list(page: EntryList) -> str:
    """A page of the entries of a district."""
    steps = (("Back", page.earlier_path), ("More places", page.later_path))
    return _document(
        title=f"{page.heading} | TableAtlas",
        path=page.path,
        body=joined(
            f"<h1>{text(page.heading)}</h1>",
            *(_row(entry) for entry in page.entries),
            *(f'<div class="ta-step">{link(path, label)}</div>' for label, path in steps if path),
        ),
    )


def _document(*, title: str, path: str, body: str) -> str:
    rail = repeated(f"<div>{link(district_path(name), name)}</div>\n" for name in vocabulary.DISTRICTS)
    kitchens = repeated(
        f"<div>{link(f'/kitchen/{index}', name)}</div>\n" for index, name in enumerate(vocabulary.CUISINES)
    )
    searches = ", ".join(
        link(f"/find?kitchen={kitchen}&in={town}", f"{kitchen} food, {town}")
        for kitchen in vocabulary.CUISINES
        for town in vocabulary.DISTRICTS[1::3]
    )
    topics = repeated(f'<a href="/help/{i}">{name}</a> |\n' for i, name in enumerate(_HELP_TOPICS))
    return joined(
        HTML5,
        '<html>\n<head>\n<meta http-equiv="Content-Type" content="text/html; charset=utf-8">',
        f"<title>{text(title)}</title>",
        f'<link rel="canonical" href="{ORIGIN}{text(path)}">',
        f'<link rel="stylesheet" href="/s/atlas.css">\n<style>{_STYLE}</style>',
        f"<script>{_SCRIPT}</script>\n</head>\n<body>",
        '<div class="ta-top"><a href="/"><b>TableAtlas</b></a> <a href="/towns">Towns</a>',
        '<a href="/kitchens">Kitchens</a> <a href="/add">Add a place</a></div>',
        f'<div class="ta-shell">\n<div class="ta-rail"><b>{vocabulary.CITY}</b>\n{rail}',
        f"<b>Kitchens</b>\n{kitchens}</div>",
        f'<div class="ta-body">\n{body}\n</div>\n</div>',
        f'<div class="ta-foot">\n{topics}<p>{searches}</p>',
        f"<p>{_LEGAL}</p>\n&copy; TableAtlas 2025</div>",
        "</body>\n</html>\n",
    )


def _lines(entry: Entry) -> str:
    """The labelled facts, one line each, those that are known."""
    website = entry.website and link(f"/out?to=http://{entry.website}/", entry.website)
    where = (
        f'<span class="adr street-address">{text(entry.street)}</span>,'
        f' <span class="locality">{text(entry.district)}</span>, {vocabulary.CITY}'
    )
    hours = repeated(f"<li>{text(line)}\n" for line in entry.hours)
    lines = (
        ("Kitchen", _tags(entry)),
        ("Where", where),
        ("Tel", entry.phone and f'<span class="tel">{entry.phone}</span>'),
        ("Open", hours and f'<ul class="ta-hours">{hours}</ul>'),
        ("Mains", entry.price and f'about <span class="pricerange">{text(entry.price)}</span>'),
        ("Web", website),
    )
    return repeated(
        f'<div class="ta-line"><span class="lbl">{label}</span> {value}</div>\n'
        for label, value in lines
        if value
    )


def _tags(entry: Entry) -> str:
    return f'<ul class="ta-tags">{repeated(f"<li>{text(tag)}</li>" for tag in entry.cuisines)}</ul>'


def _also_viewed(entries: Iterable[Entry]) -> str:
    items = repeated(
        f'<div class="ta-mini"><span class="fn">{link(entry.path, entry.name)}</span>'
        f' <span class="street-address">{text(entry.street)}</span>'
        f' <span class="tel">{entry.phone or ""}</span></div>\n'
        for entry in entries
    )
    return f'<div class="ta-also"><b>People also viewed</b>\n{items}</div>'


def _comments(comments: Iterable[Review]) -> str:
    return repeated(
        f'<div class="ta-say"><span class="reviewer">{text(comment.author.split()[0])}</span>'
        f" gave {comment.stars * 2} / 10 in {comment.written.year}: {text(comment.text)}</div>\n"
        for comment in comments
    )


def _row(entry: Entry) -> str:
    return joined(
        '<div class="ta-row">',
        f'<div class="ta-score">{entry.rating}</div>' if entry.rating else None,
        f'<div class="fn">{link(entry.path, entry.name)}</div>',
        f'{_tags(entry)}\n<div class="street-address">{text(entry.street)}</div>\n</div>',
    )
