"""The city guide after its redesign: the same facts under other tags, names and wrappers."""

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
    joined,
    link,
    long_date,
    mail_link,
    phone_href,
    repeated,
    slug,
    stars_text,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from siteloom.apps.demo.sites.fictional_places import Event, Restaurant, Review

_STYLE = """
*{box-sizing:border-box} body{margin:0;font:16px/1.55 system-ui,Helvetica,sans-serif;color:#1c2530}
a{color:#0b6e63;text-decoration:none} .bar_q8z1{background:#10322f;padding:14px 32px}
.bar_q8z1 a{color:#dff5ef;margin-right:22px} .brand_v20k{font-weight:800;font-size:20px}
.trail_m4ux{list-style:none;display:flex;gap:10px;padding:10px 32px;margin:0;font-size:13px}
.carousel_t7wd{display:flex;gap:12px;padding:12px 32px;background:#eef6f4;overflow:hidden}
.tile_b3ne{flex:1;background:#fff;border-radius:10px;padding:10px 14px;font-size:13px}
.hero_k3f9{padding:26px 32px;background:#f7faf9} .hero_k3f9 h1{font-size:40px;margin:0}
.split_j6ra{display:grid;grid-template-columns:330px 1fr;gap:34px;padding:22px 32px}
.info_p5vy{border:1px solid #d5e3df;border-radius:12px;padding:18px;align-self:start;font-size:15px}
.pair_c9ht{display:grid;grid-template-columns:116px 1fr;padding:6px 0} .key_w1sd{color:#6a7b78}
.chips_x2lo{list-style:none;display:flex;gap:6px;padding:0;margin:0}
.chips_x2lo li{background:#dff0ea;border-radius:20px;padding:1px 10px;font-size:13px}
.promo_y8gm{background:#fff6e0;padding:10px 18px;border-radius:8px;margin:10px 32px;font-size:13px}
.alert_n5qe{background:#ffe3dc;padding:12px 32px} .facts_d4zb{border-collapse:collapse;width:100%}
.facts_d4zb th{text-align:left;padding:6px 0;font-weight:400;color:#6a7b78;width:150px}
.grid_h2cp{display:grid;grid-template-columns:repeat(3,1fr);gap:16px;padding:16px 32px}
.grid_h2cp article{border:1px solid #d5e3df;border-radius:12px;padding:14px}
.foot_s7ki{background:#10322f;color:#bcd8d1;padding:26px 32px;margin-top:30px;font-size:13px}
.foot_s7ki a{color:#dff5ef;margin-right:16px}
.quote_r0xf{border-left:3px solid #9fd0c4;margin:14px 0}
.quote_r0xf p{margin:4px 14px} time{color:#6a7b78}
.dense_o1vb{columns:4;list-style:none;padding:0}
""".strip()
_SCRIPT = """
window.__GUIDE__ = {"release": "2025.44.1", "route": "%(path)s", "flags": ["tiles", "newSearch"]};
(() => {
  const opened = performance.now();
  addEventListener("pagehide", () => navigator.sendBeacon("/b", performance.now() - opened));
  document.addEventListener("click", (event) => {
    const tile = event.target.closest("[data-track]");
    if (tile) { navigator.sendBeacon("/b", tile.dataset.track); }
  });
})();
""".strip()
_FOOTER_LINKS = (
    "About",
    "Reviewers",
    "Corrections",
    "Advertise",
    "Add a place",
    "Terms",
    "Privacy",
)


def render_restaurant(page: RestaurantPage) -> str:
    """A restaurant's page: related tiles on top, an information card on the left."""
    place = page.restaurant
    return _document(
        title=f"{place.name} \u00b7 {vocabulary.CITY} Guide",
        path=page.path,
        ads=page.ads,
        body=joined(
            _trail((place.district, district_path(place.district)), place.name),
            f'<aside class="alert_n5qe" role="alert">{text(page.notice)}</aside>' if page.notice else None,
            _tiles("Readers also liked", page.also_liked),
            _hero(page),
            '<div class="split_j6ra">',
            _information_card(page),
            '<div class="story_f3lu">',
            repeated(f"<p>{text(line)}</p>\n" for line in place.blurb),
            f"<footer>Checked on <time>{long_date(page.update.day)}</time></footer>",
            _reviews(page.reviews),
            "</div>\n</div>",
            _tiles("Around the corner", page.nearby),
            _event_tiles("Later that evening", page.coming_up),
        ),
    )


def render_event(page: EventPage) -> str:
    """An event's page: a table of facts under the title."""
    event = page.event
    return _document(
        title=f"{event.title} \u00b7 {vocabulary.CITY} Guide",
        path=page.path,
        ads=page.ads,
        body=joined(
            _trail((event.category, category_path(event.category)), event.title),
            _event_tiles("The same week", page.same_week),
            '<section class="hero_k3f9">',
            "<em>Few tickets left</em>" if page.selling_fast else None,
            f'<h1>{text(event.title)}</h1>\n<ul class="chips_x2lo">',
            f"<li>{text(event.category)}</li></ul>\n</section>",
            '<div class="split_j6ra">\n<div class="story_f3lu">',
            repeated(f"<p>{text(line)}</p>\n" for line in event.blurb),
            f'</div>\n<div class="info_p5vy">\n{_event_facts(event)}\n</div>\n</div>',
            _event_tiles("At the same place", page.same_venue) if page.same_venue else None,
            _tiles("Supper before", page.eat_nearby),
        ),
    )


def render_list(page: ListPage) -> str:
    """A page of a list, its cards in a grid of three columns."""
    cards = repeated(_card(card) for card in page.cards)
    steps = repeated(
        f"<li>{link(path, f'Page {number}')}</li>\n"
        for number, path in enumerate(page.sibling_paths, 1)
        if number != page.number
    )
    return _document(
        title=f"{page.heading} \u00b7 {vocabulary.CITY} Guide",
        path=page.path,
        ads=page.ads,
        body=joined(
            _trail(("Restaurants", "/restaurants/"), page.heading),
            f'<section class="hero_k3f9"><h1>{text(page.heading)}</h1></section>',
            f'<section class="grid_h2cp">\n{cards}</section>',
            f'<nav aria-label="Pages"><ul class="trail_m4ux">{steps}</ul></nav>',
        ),
    )


def _document(*, title: str, path: str, ads: Ads, body: str) -> str:
    return joined(
        HTML5,
        '<html lang="en-GB">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{text(title)}</title>",
        f'<link rel="canonical" href="{ORIGIN}{path}">',
        f'<meta property="og:title" content="{text(title)}">',
        '<link rel="preload" as="style" href="/assets/app.5c1e9.css">',
        f"<style>{_STYLE}</style>\n</head>\n<body>",
        _header(),
        f'<main id="content">\n{_promo(ads, 0) if ads.leaderboard else ""}',
        body,
        _promo(ads, 1) if ads.inline else None,
        "</main>",
        _footer(),
        f"<script>{_SCRIPT % {'path': path}}</script>\n</body>\n</html>\n",
    )


def _header() -> str:
    menus = (
        ("Eat & drink", "/restaurants/", [(name, district_path(name)) for name in vocabulary.DISTRICTS]),
        ("Kitchens", "/cuisine/", [(name, cuisine_path(name)) for name in vocabulary.CUISINES]),
        ("Go out", "/events/", [(name, category_path(name)) for name in vocabulary.CATEGORIES]),
    )
    return joined(
        '<header class="bar_q8z1">',
        f'<a class="brand_v20k" href="/">{vocabulary.CITY}&thinsp;/&thinsp;Guide</a>',
        *(
            f"<nav hidden>{repeated(link(path, name) + chr(10) for name, path in entries)}</nav>"
            f"{link(href, label)}"
            for label, href, entries in menus
        ),
        '<a href="/search">Search</a> <a href="/account">My places</a></header>',
    )


def _footer() -> str:
    links = repeated(link(f"/{slug(label)}/", label) + "\n" for label in _FOOTER_LINKS)
    searches = repeated(f"<li>{link(path, label)}</li>\n" for label, path in popular_searches())
    return (
        f'<footer class="foot_s7ki"><p>{links}</p>\n<ul class="dense_o1vb">{searches}</ul>\n'
        f"<p>The {vocabulary.CITY} Guide, 2 Ropewalk Yard. Telephone 0117 496 0001.</p></footer>"
    )


def _promo(ads: Ads, slot: int) -> str:
    advertiser, offer = ads.wording[slot]
    return (
        f'<div class="promo_y8gm" data-slot="{ads.token}">Paid for by'
        f" <b>{text(advertiser)}</b>: {text(offer)}</div>"
    )


def _trail(section: tuple[str, str], here: str) -> str:
    label, href = section
    return (
        f'<nav><ol class="trail_m4ux"><li><a href="/">{vocabulary.CITY}</a></li>'
        f"<li>{link(href, label)}</li><li>{text(here)}</li></ol></nav>"
    )


def _stars(half_stars: int) -> str:
    return (
        f'<span class="score_e6pj"><img src="/assets/rating/{half_stars * 5}.svg"'
        f' alt="{stars_text(half_stars)}"></span>'
    )


def _hero(page: RestaurantPage) -> str:
    place = page.restaurant
    chips = repeated(f"<li>{link(cuisine_path(name), name)}</li>" for name in place.cuisines)
    picture = f'<img src="/media/{place.number}/wide.webp" alt="" height="120">'
    return joined(
        f'<section class="hero_k3f9" data-place="{place.number}">',
        f"<figure>{picture}</figure>" if page.variant == "featured" else None,
        f'<h1>{text(place.name)}</h1>\n<ul class="chips_x2lo">{chips}</ul>',
        f"{_stars(place.half_stars)} <small>{len(page.reviews)} opinions</small>",
        "</section>",
    )


def _information_card(page: RestaurantPage) -> str:
    place = page.restaurant
    where = (
        f"<address><span>{text(place.street)}</span>,"
        f" {link(district_path(place.district), place.district)},"
        f" {vocabulary.CITY} {place.postcode}</address>"
    )
    website = place.website and link(place.website, "Open website", 'target="_blank"')
    rows = (
        ("Opening times", repeated(f"<div>{text(line)}</div>" for line in place.hours)),
        ("Find it", where),
        ("Telephone", place.phone and link(phone_href(place.phone), place.phone)),
        ("Online", website),
        ("Write", place.email and mail_link(place.email)),
        ("Mains around", page.price and f"<b>{text(page.price)}</b>"),
        ("Since", place.opened and f"<time>{long_date(place.opened)}</time>"),
    )
    pairs = repeated(
        f'<div class="pair_c9ht"><span class="key_w1sd">{label}</span><span>{value}</span></div>\n'
        for label, value in rows
        if value
    )
    return f'<div class="info_p5vy">\n{pairs}</div>'


def _reviews(reviews: Iterable[Review]) -> str:
    quotes = repeated(
        f'<blockquote class="quote_r0xf">{_stars(2 * review.stars)}<p>{text(review.text)}</p>'
        f"<p><cite>{text(review.author)}</cite>, <time>{long_date(review.written)}</time></p>"
        "</blockquote>\n"
        for review in reviews
    )
    return f"<section>\n<h2>Opinions</h2>\n{quotes}</section>"


def _tiles(heading: str, cards: Iterable[Card]) -> str:
    tiles = repeated(_tile(card) for card in cards)
    return f'<section class="carousel_t7wd" aria-label="{text(heading)}">\n{tiles}</section>'


def _tile(card: Card) -> str:
    place = card.restaurant
    details = (*place.cuisines, place.phone, card.price)
    return (
        f'<div class="tile_b3ne" data-track="{place.number}">{_place_link(place)}'
        f"{repeated(f'<div>{text(detail)}</div>' for detail in details if detail)}</div>\n"
    )


def _place_link(place: Restaurant) -> str:
    return f"<h3>{link(restaurant_path(place), place.name)}</h3>"


def _event_facts(event: Event) -> str:
    price, email = event_price(event), event.organiser_email
    rows = (
        ("Who", repeated(f"<div>{text(act)}</div>" for act in event.performers)),
        ("Where", link(f"/venues/{slug(event.venue)}/", event.venue)),
        ("When", f"<time>{day_and_date(event.day)}</time> from {event.starts}"),
        ("Contact", email and mail_link(email)),
        ("Admission", price and text(price)),
    )
    body = repeated(f"<tr><th>{label}</th><td>{value}</td></tr>\n" for label, value in rows if value)
    return f'<table class="facts_d4zb"><tbody>\n{body}</tbody></table>'


def _event_tiles(heading: str, events: Iterable[Event]) -> str:
    tiles = repeated(
        f'<div class="tile_b3ne"><h3>{link(event_path(event), event.title)}</h3>'
        f"<time>{day_and_date(event.day)}</time><div>{text(event.venue)}</div>"
        f"<div>{event_price(event) or 'Free'}</div></div>\n"
        for event in events
    )
    return f'<section class="carousel_t7wd" aria-label="{text(heading)}">\n{tiles}</section>'


def _card(card: Card) -> str:
    place = card.restaurant
    chips = repeated(f"<li>{text(cuisine)}</li>" for cuisine in place.cuisines)
    return joined(
        f'<article class="{"partner_u9aw" if card.sponsored else "item_z4dk"}">',
        f'{_place_link(place)}\n<ul class="chips_x2lo">{chips}</ul>',
        f"<div>{text(place.district)}</div>",
        f"<div>Mains around <b>{text(card.price)}</b></div>" if card.price else None,
        _stars(place.half_stars) if card.rating else None,
        "</article>\n",
    )
