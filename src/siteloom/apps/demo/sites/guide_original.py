"""The city guide as it first looked: two columns, facts in a definition list, some old corners."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteloom.apps.demo.sites import vocabulary
from siteloom.apps.demo.sites.guide_content import (
    ORIGIN,
    Ads,
    Card,
    EventPage,
    ListPage,
    RestaurantPage,
    category_path,
    cuisine_path,
    district_path,
    event_path,
    event_price,
    popular_searches,
    restaurant_path,
)
from siteloom.apps.demo.sites.vocabulary import (
    HTML5,
    day_and_date,
    entity_text,
    joined,
    link,
    long_date,
    mail_link,
    phone_href,
    repeated,
    slug,
    star_count,
    stars_text,
    text,
    unbroken,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from siteloom.apps.demo.sites.fictional_places import Event, Restaurant, Review

_STYLE = """
body{font:14px/1.5 Georgia,serif;color:#333;background:#e9e3d8;margin:0}
a{color:#8a2f1f} h1{font-size:30px;margin:.2em 0} h2,h3{font-size:17px;margin:1em 0 .4em}
#wrap{width:980px;margin:0 auto;background:#fff;padding:0 20px} #header{padding:14px 0}
#logo{font-size:28px;font-weight:bold;color:#8a2f1f;text-decoration:none}
#search{float:right} #mainnav{list-style:none;margin:12px 0 0;padding:0;background:#8a2f1f}
#mainnav>li{display:inline-block;padding:7px 13px} #mainnav>li>a{color:#fff;text-decoration:none}
#mainnav ul{display:none} #crumbs{padding:8px 0;font-size:12px;color:#777}
#main{float:left;width:640px} #side{float:right;width:300px;font-size:13px}
#columns:after{content:"";display:block;clear:both} .facts dt{float:left;width:120px;color:#777}
.facts dd{margin:0 0 7px 130px} td.lbl{color:#777;width:120px;vertical-align:top}
.contact-box,.box{border:1px solid #ddd3c2;background:#faf7f1;padding:4px 14px;margin:14px 0}
.notice{background:#fff3c4;border:1px solid #e5cf7a;padding:8px 14px;margin:8px 0}
.ad{background:#eef2f6;border:1px dashed #b8c4d0;padding:10px;margin:12px auto;text-align:center}
.ad-leader{width:728px} .featured-frame{border-top:4px solid #c9a227;padding-top:8px}
.gallery img{background:#d9cfbd;display:inline-block;margin-right:6px} .strap{color:#777}
.review{border-top:1px solid #eee;padding:6px 0} .by{font-size:12px;color:#777;margin:0}
.card,.spons{border-bottom:1px solid #ddd3c2;padding:9px 0} .spons{background:#fdf6dc}
.mini dt{float:left;clear:left;width:90px;color:#777} .mini dd{margin:0 0 0 96px} .mini dl{margin:0}
.when{list-style:none;padding:0} .pager{padding:14px 0} .pager a,.pager b{margin-right:8px}
#footer{border-top:3px solid #8a2f1f;margin-top:20px;padding:14px 0;font-size:12px;clear:both}
#footer ul{display:inline-block;vertical-align:top;list-style:none;padding:0;margin:0 34px 0 0}
""".strip()
_SCRIPT = """
var lmg = window.lmg || {q: []};
lmg.push = function (name, data) { this.q.push([name, data || {}, +new Date()]); };
lmg.page = {kind: "%(kind)s", path: "%(path)s", build: "r2025.18"};
(function (d) {
  var menus = d.getElementsByClassName("has-menu"), i;
  for (i = 0; i < menus.length; i++) {
    menus[i].onmouseover = function () { this.className = "has-menu open"; };
    menus[i].onmouseout = function () { this.className = "has-menu"; };
  }
  if (d.cookie.indexOf("lmg_seen") < 0) { d.cookie = "lmg_seen=1;path=/"; }
})(document);
""".strip()
_FOOTER_LINKS = {
    "The Guide": ("About us", "Our reviewers", "Corrections", "Jobs", "Press"),
    "For businesses": ("Add a restaurant", "List an event", "Advertise", "Widgets"),
    "Read more": ("Sunday lunch", "Vegetarian", "Date night", "Children welcome", "Late suppers"),
    "Small print": ("Terms of use", "Privacy", "Cookies", "Accessibility"),
}


def render_restaurant(page: RestaurantPage, *, phone_in_contact_box: bool = False) -> str:
    """A restaurant's page; the mild change moves the phone from the facts to the contact box."""
    place = page.restaurant
    record = _legacy_record if page.variant == "legacy" else _record
    main = record(page, phone_in_contact_box)
    if page.variant == "featured":
        main = f'<div class="featured-frame">{_gallery(place)}\n{main}\n</div>'
    nearby = _restaurant_box("Nearby restaurants", page.nearby)
    return _document(
        kind="restaurant",
        title=f"{place.name} - {place.district} - {vocabulary.CITY} restaurant guide",
        path=page.path,
        description=f"{place.name}, {place.street}: {place.cuisines[0]} food. {place.blurb[0]}",
        above=joined(
            _trail(
                (("Restaurants", "/restaurants/"), (place.district, district_path(place.district))),
                place.name,
            ),
            f'<div class="notice"><b>Please note:</b> {text(page.notice)}</div>' if page.notice else None,
        ),
        ads=page.ads,
        main=joined(
            nearby if page.nearby_first else None,
            main,
            _inline_ad(page.ads),
            _reviews(page.reviews),
            None if page.nearby_first else nearby,
        ),
        side=joined(
            _restaurant_box("You may also like", page.also_liked),
            _event_box("Coming up in town", page.coming_up),
        ),
    )


def render_event(page: EventPage) -> str:
    """An event's page; its list items and paragraphs are never closed."""
    event = page.event
    same_venue = _event_box(f"More at {event.venue}", page.same_venue) if page.same_venue else None
    return _document(
        kind="event",
        title=f"{event.title} | What's on in {vocabulary.CITY}",
        path=page.path,
        description=f"{event.title} at {event.venue}. {event.blurb[0]}",
        above=_trail(
            (("What's on", "/events/"), (event.category, category_path(event.category))),
            event.title,
        ),
        ads=page.ads,
        main=joined(
            same_venue if page.same_venue_first else None,
            _event_record(page),
            _inline_ad(page.ads),
            None if page.same_venue_first else same_venue,
        ),
        side=joined(
            _event_box("Also on this week", page.same_week),
            _restaurant_box("Eat nearby", page.eat_nearby),
        ),
    )


def render_list(page: ListPage) -> str:
    """A page of cards with links to the other pages of the list."""
    cards = [_card(card) for card in page.cards]
    middle = len(cards) // 2
    return _document(
        kind="list",
        title=f"{page.heading}, page {page.number} - {vocabulary.CITY} Guide",
        path=page.path,
        description=f"{page.heading}: reviews, prices and opening hours.",
        above=_trail((("Restaurants", "/restaurants/"),), page.heading),
        ads=page.ads,
        main=joined(
            f"<h1>{text(page.heading)}</h1>",
            '<div class="cards">',
            *cards[:middle],
            _inline_ad(page.ads),
            *cards[middle:],
            "</div>",
            _pager(page),
        ),
        side='<div class="box"><h3>Hungry for more?</h3>\n<p>Sign up for our Friday letter.</div>',
    )


def _document(
    *,
    kind: str,
    title: str,
    path: str,
    description: str,
    above: str,
    ads: Ads,
    main: str,
    side: str,
) -> str:
    return joined(
        HTML5,
        '<html lang="en">\n<head>\n<meta charset="utf-8">',
        f"<title>{text(title)}</title>",
        f'<meta name="description" content="{text(description)}">',
        f'<link rel="canonical" href="{ORIGIN}{path}">',
        '<link rel="stylesheet" href="/css/guide.css?v=118" type="text/css">',
        f"<style>\n{_STYLE}\n</style>",
        f'<script type="text/javascript">\n{_SCRIPT % {"kind": kind, "path": path}}\n</script>',
        f'</head>\n<body class="{kind}-page">',
        _ad(ads, 0, "ad ad-leader") if ads.leaderboard else None,
        '<div id="wrap">',
        _header(),
        above,
        f'<div id="columns">\n<div id="main">\n{main}\n</div>\n<div id="side">',
        *(_ad(ads, 2 + slot, "ad ad-side") for slot in range(ads.sidebar)),
        side,
        _newsletter(),
        "</div>\n</div>",
        _footer(),
        "</div>\n</body>\n</html>\n",
    )


def _trail(sections: Sequence[tuple[str, str]], here: str) -> str:
    links = repeated(f"{link(href, label)} &raquo; " for label, href in (("Home", "/"), *sections))
    return f'<div id="crumbs">{links}<strong>{text(here)}</strong></div>'


def _header() -> str:
    return joined(
        f'<div id="header">\n<a id="logo" href="/">The {vocabulary.CITY} Guide</a>',
        '<form id="search" action="/search"><input name="q" size=24 value="">',
        '<input type=submit value="Search"> <a href="/account/login">Log in</a></form>',
        '<ul id="mainnav">',
        _menu("Restaurants", "/restaurants/", vocabulary.DISTRICTS, district_path),
        _menu("Cuisines", "/cuisine/", vocabulary.CUISINES, cuisine_path),
        _menu("What's on", "/events/", vocabulary.CATEGORIES, category_path),
        '<li><a href="/offers/">Offers</a></li>\n<li><a href="/map/">Map</a></li>',
        "</ul>\n</div>",
    )


def _menu(label: str, href: str, entries: Iterable[str], path_of: Callable[[str], str]) -> str:
    items = repeated(f"<li>{link(path_of(entry), entry)}</li>\n" for entry in entries)
    return f'<li class="has-menu">{link(href, label)}\n<ul>\n{items}</ul></li>'


def _newsletter() -> str:
    return joined(
        '<div class="box newsletter"><h3>The Friday letter</h3>',
        "<p>Five tables, three shows and one bargain, in your in-box every Friday.",
        '<form action="/newsletter" method=post><input name="email" size=20>',
        '<input type=submit value="Join"></form></div>',
    )


def _footer() -> str:
    columns = repeated(
        f"<ul>\n<li><b>{text(heading)}</b>\n"
        + repeated(f"<li>{link(f'/{slug(entry)}/', entry)}\n" for entry in entries)
        + "</ul>\n"
        for heading, entries in _FOOTER_LINKS.items()
    )
    searches = ",\n".join(link(path, label) for label, path in popular_searches())
    return joined(
        f'<div id="footer">\n{columns}<p>Popular searches: {searches}',
        f"<p>&copy; 2025 The {vocabulary.CITY} Guide Ltd, 2 Ropewalk Yard, {vocabulary.CITY}"
        "&nbsp;LK1&nbsp;1AA. Phone: 0117&nbsp;496&nbsp;0001."
        f" E-mail: {mail_link('desk@larkmoor-guide.example')}",
        "<p>Every effort is made to keep these pages correct, but please ring before you travel.",
        "</div>",
    )


def _ad(ads: Ads, slot: int, css_class: str) -> str:
    advertiser, offer = ads.wording[slot]
    return (
        f'<div class="{css_class}" id="ad-{ads.token}-{slot}"><small>Advertisement</small><br>\n'
        f"{link(f'https://ads.adloft.example/c/{ads.token}', advertiser)}<br>{text(offer)}</div>"
    )


def _inline_ad(ads: Ads) -> str | None:
    return _ad(ads, 1, "ad ad-inline") if ads.inline else None


def _stars(half_stars: int, width: int) -> str:
    name = star_count(half_stars).replace(".", "-")
    return f'<img src="/img/stars-{name}.gif" alt="{stars_text(half_stars)}" width={width} height=16>'


def _gallery(place: Restaurant) -> str:
    pictures = repeated(
        f'<img src="/photos/{place.number}/{shot}.jpg" alt="" width=200 height=140>\n'
        for shot in ("room", "plate", "bar")
    )
    return f'<div class="gallery" id="gallery-{place.number}">\n{pictures}</div>'


def _record(page: RestaurantPage, phone_in_contact_box: bool) -> str:
    place = page.restaurant
    rows = (
        ("Address:", f"{text(place.street)}<br>{_district_link(place)}<br>{_town_line(place)}"),
        ("Cuisine:", ", ".join(link(cuisine_path(cuisine), cuisine) for cuisine in place.cuisines)),
        ("Phone:", place.phone and not phone_in_contact_box and unbroken(place.phone)),
        ("Average main:", page.price and text(page.price)),
        ("Opening hours:", "<br>".join(text(line) for line in place.hours)),
        ("Opened:", place.opened and long_date(place.opened)),
    )
    facts = repeated(f"<dt>{label}</dt>\n<dd>{value}</dd>\n" for label, value in rows if value)
    return joined(
        f'<div class="venue vcard" id="venue-{place.number}">',
        f"<h1>{text(place.name)}</h1>",
        f'<p class="strap">{_stars(place.half_stars, 90)} {_review_count(page)}</p>',
        f'<dl class="facts">\n{facts}</dl>',
        _contact_box(page, phone_in_contact_box),
        f'<div class="blurb">\n{_paragraphs(place.blurb)}</div>',
        f'<p class="stamp">Last updated: <span>{long_date(page.update.day)}</span></p>',
        "</div>",
    )


def _legacy_record(page: RestaurantPage, phone_in_contact_box: bool) -> str:
    """The record on pages that nobody has touched for years: a table of sloppy HTML."""
    place = page.restaurant
    rows = (
        (
            "Address:",
            f"{entity_text(place.street)}<BR>{_district_link(place)}<BR>{_town_line(place)}",
        ),
        ("Phone:", place.phone and not phone_in_contact_box and place.phone),
        ("Cuisine:", "<BR>".join(entity_text(cuisine) for cuisine in place.cuisines)),
        ("Rating:", _stars(place.half_stars, 90)),
        ("Average main:", page.price and entity_text(page.price)),
        ("Opened:", place.opened and long_date(place.opened)),
        ("Opening hours:", "<BR>".join(entity_text(line) for line in place.hours)),
    )
    facts = repeated(f"<TR><TD class=lbl>{label}<TD>{value}\n" for label, value in rows if value)
    return joined(
        f"<DIV class=venue id=venue-{place.number}>",
        f"<H1>{entity_text(place.name)}</H1>",
        f"<TABLE class=facts width=100% cellpadding=2>\n{facts}</TABLE>",
        _contact_box(page, phone_in_contact_box),
        f"<P>{entity_text(' '.join(place.blurb))}",
        f"<P class=stamp>Last updated: <SPAN>{long_date(page.update.day)}</SPAN>",
        "</DIV>",
    )


def _paragraphs(lines: Iterable[str]) -> str:
    return repeated(f"<p>{text(line)}\n" for line in lines)


def _district_link(place: Restaurant) -> str:
    return link(district_path(place.district), place.district)


def _town_line(place: Restaurant) -> str:
    return f"{vocabulary.CITY}&nbsp;{unbroken(place.postcode)}"


def _review_count(page: RestaurantPage) -> str:
    return f'<a href="#reviews">{len(page.reviews)} reader reviews</a>'


def _contact_box(page: RestaurantPage, phone_in_contact_box: bool) -> str:
    place = page.restaurant
    phone = place.phone if phone_in_contact_box else None
    return joined(
        '<div class="contact-box"><h3>Contact</h3>',
        f'<p class="call"><b>Call us</b> {link(phone_href(phone), phone)}</p>' if phone else None,
        f"<p>E-mail: {mail_link(place.email)}" if place.email else None,
        f"<p>Website: {link(place.website, 'Visit website', 'rel=nofollow')}" if place.website else None,
        f'<p><a href="/corrections/?venue={place.number}">Something wrong? Tell us</a>\n</div>',
    )


def _reviews(reviews: Sequence[Review]) -> str:
    items = repeated(
        f'<div class="review"><p class="by">{_stars(2 * review.stars, 60)} by'
        f" <b>{text(review.author)}</b> on {long_date(review.written)}</p>\n"
        f"<p>{text(review.text)}</div>\n"
        for review in reviews
    )
    nothing = "<p>Nobody has reviewed this restaurant yet. Be the first!\n"
    return f'<div id="reviews" class="reviews"><h2>Reader reviews</h2>\n{items or nothing}</div>'


def _restaurant_box(heading: str, cards: Iterable[Card]) -> str:
    """Other restaurants in markup much like the record's own."""
    items = repeated(_mini_record(card) for card in cards)
    return f'<div class="box related"><h3>{text(heading)}</h3>\n{items}</div>'


def _mini_record(card: Card) -> str:
    place = card.restaurant
    return joined(
        f'<div class="venue mini" id="rel-{place.number}">',
        f"<h4>{link(restaurant_path(place), place.name)}</h4>\n<dl>",
        f"<dt>Cuisine:</dt><dd>{text(', '.join(place.cuisines))}</dd>",
        f"<dt>Phone:</dt><dd>{unbroken(place.phone)}</dd>" if place.phone else None,
        f"<dt>Average main:</dt><dd>{text(card.price)}</dd>" if card.price else None,
        "</dl></div>\n",
    )


def _event_record(page: EventPage) -> str:
    event = page.event
    price, email = event_price(event), event.organiser_email
    rows = (
        ("Date", f"{day_and_date(event.day)} <i>{event.starts}</i>"),
        ("Tickets", price and text(price)),
        ("Venue", link(f"/venues/{slug(event.venue)}/", event.venue)),
        ("Organiser", email and mail_link(email)),
    )
    facts = repeated(f"<li><b>{label}:</b> {value}\n" for label, value in rows if value)
    acts = "<br>\n".join(link(f"/artists/{slug(act)}/", act) for act in event.performers)
    return joined(
        f'<div class="event" id="event-{event.number}">',
        f'<p class="strap">{link(category_path(event.category), event.category)}',
        f"<h1>{text(event.title)}</h1>",
        '<p class="notice">Selling fast!' if page.selling_fast else None,
        f'<ul class="when">\n{facts}</ul>',
        f'<div class="lineup">Featuring:<br>\n{acts}</div>',
        _paragraphs(event.blurb),
        "</div>",
    )


def _event_box(heading: str, events: Iterable[Event]) -> str:
    items = repeated(
        f"<li>{link(event_path(event), event.title)}<br>{day_and_date(event.day)},"
        f" <i>{text(event.venue)}</i> {event_price(event) or 'Free'}\n"
        for event in events
    )
    return f'<div class="box related"><h3>{text(heading)}</h3>\n<ul class="when">\n{items}</ul></div>'


def _card(card: Card) -> str:
    place = card.restaurant
    return joined(
        f'<div class="{"spons" if card.sponsored else "card"}" id="card-{place.number}">',
        "<small>Sponsored</small>" if card.sponsored else None,
        f"<h3>{link(restaurant_path(place), place.name)}</h3>",
        _stars(place.half_stars, 90) if card.rating else None,
        f'<p class="strap"><span class="where">{text(place.district)}</span> &middot;',
        ", ".join(f"<span>{text(cuisine)}</span>" for cuisine in place.cuisines),
        f'<br>Average main: <b class="price">{text(card.price)}</b>' if card.price else None,
        f"<p>{text(place.blurb[0])}",
        "</div>",
    )


def _pager(page: ListPage) -> str:
    numbers = repeated(
        f"<b>{number}</b>\n" if number == page.number else f"{link(path, str(number))}\n"
        for number, path in enumerate(page.sibling_paths, 1)
    )
    later = page.sibling_paths[page.number : page.number + 1]
    return f'<div class="pager">Pages: {numbers}{repeated(link(path, "Next") for path in later)}</div>'
