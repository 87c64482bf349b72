"""Pictures of every page of the web application: `python -m tests.browser.screenshots FOLDER`.

They show the workspace that `siteloom demo` leaves behind, on a laptop and on a phone, light and dark.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from playwright.sync_api import Page, expect

from siteloom.config import StoreSettings
from siteloom.store import Store, open_store

from ..cli.command import Command
from .serving import DIRECTORY, GUIDE, LAPTOP, PHONE, running_browser, serving
from .signing_in import add_account, sign_in

NAME = "ada"
_MINUTE = 60_000  # milliseconds
SCREENS = {"laptop": LAPTOP, "phone": PHONE}
COLORS: tuple[Literal["light", "dark"], ...] = ("light", "dark")
PAGES = {
    "sites": "/",
    "site": f"/sites/{GUIDE}",
    "template": f"/clusters/{GUIDE}/1",
    "sample": f"/clusters/{GUIDE}/1/sample",
    "tags": f"/clusters/{GUIDE}/1/tags",
    "compare-with": f"/compare?a={GUIDE}/1",
    "compare": f"/compare?a={GUIDE}/1&b={DIRECTORY}/1",
    "annotate": f"/clusters/{DIRECTORY}/1/annotate",
    "jobs": "/jobs",
    "job": "/jobs/1",
    "settings": "/settings",
    "accounts": "/settings/accounts",
    "not-found": "/sites/nowhere.example",
}


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("Call it with the folder that the pictures go to.")
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    with demo_store() as store, serving(store) as address, running_browser() as browser:
        with browser.new_context(base_url=address, viewport=LAPTOP) as context:
            do_a_job(context.new_page())
        for screen, size in SCREENS.items():
            for colors in COLORS:
                with browser.new_context(base_url=address, viewport=size, color_scheme=colors) as context:
                    page = context.new_page()
                    take_pictures(page, target, f"{screen}-{colors}")
    print(f"The pictures are in {target}.")


def do_a_job(page: Page) -> None:
    """Have something done, so that there is a job to be seen."""
    page.goto("/")
    sign_in(page, NAME)
    page.goto(f"/sites/{DIRECTORY}")
    page.get_by_role("button", name="Find templates anew").click()
    expect(page.get_by_role("link", name="See the site")).to_be_visible(timeout=_MINUTE)


def take_pictures(page: Page, target: Path, suffix: str) -> None:
    page.goto("/")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.screenshot(path=target / f"sign-in-{suffix}.png")
    sign_in(page, NAME)
    for name, path in PAGES.items():
        page.goto(path)
        # What comes later has come when nothing is asked for any more; streams of news never end.
        page.wait_for_load_state("load")
        page.wait_for_timeout(1_500)
        page.screenshot(path=target / f"{name}-{suffix}.png", caret="hide", animations="disabled")


@contextmanager
def demo_store() -> Iterator[Store]:
    """What the demo leaves behind, with an account."""
    with TemporaryDirectory(prefix="siteloom-screenshots-") as place:
        shown = Command(Path(place))("demo", "--keep", "demo")
        assert shown.returncode == 0, shown.stderr
        workspace = Path(place, "demo", "workspace")
        workspace.rename(Path(place, ".siteloom"))
        add_account(Path(place), NAME, "admin")
        with closing(open_store(StoreSettings(workspace=str(Path(place, ".siteloom"))))) as store:
            yield store


if __name__ == "__main__":
    main()
