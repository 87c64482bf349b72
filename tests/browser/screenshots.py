"""Pictures of every page of the web application: `python -m tests.browser.screenshots FOLDER`.

They show a workspace in which much has happened, on a laptop and on a phone, light and dark.
"""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from playwright.sync_api import Page, expect

from siteloom.core.settings import StoreSettings
from siteloom.operations.annotation.sample_pages import version_of
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.browser.serving import DIRECTORY, GUIDE, LAPTOP, PHONE, running_browser, serving
from tests.browser.signing_in import add_account, sign_in
from tests.lived_in import lived_in_workspace
from tests.patience import MILLISECONDS

NAME = "ada"
SCREENS = {"laptop": LAPTOP, "phone": PHONE}
COLORS: tuple[Literal["light", "dark"], ...] = ("light", "dark")
PAGES = {
    "sites": "/",
    "add": "/add",
    "site": f"/sites/{GUIDE}",
    "urls": f"/sites/{GUIDE}/urls",
    "health": f"/sites/{GUIDE}/health",
    "template": f"/clusters/{GUIDE}/1",
    "sample": f"/clusters/{GUIDE}/1/sample",
    "tags": f"/clusters/{GUIDE}/1/tags",
    "discover": f"/clusters/{DIRECTORY}/1/discover",
    "compare-with": f"/compare?a={GUIDE}/1",
    "compare": f"/compare?a={GUIDE}/1&b={DIRECTORY}/1",
    "annotate": f"/clusters/{DIRECTORY}/1/annotate",
    "records": f"/records?site={GUIDE}",
    "records-filtered": f"/records?site={GUIDE}&v.cuisine=thai&sort=v.price",
    "page": "{page}?version={before}&attribute=phone",
    "changes": "{page}/changes?attribute=name",
    "entities": "/entities",
    "entity": "/entities/1",
    "wrappers": "/wrappers",
    "wrapper": f"/wrappers/{GUIDE}/1",
    "wrapper-diff": f"/wrappers/{GUIDE}/3/diff?a=1&b=1",
    "review": "/review",
    "monitoring": "/monitoring",
    "alarms": "/monitoring/alarms",
    "performance": "/performance",
    "run": "/runs/8",
    "search": "/search?words=thai",
    "seeds": "/seeds",
    "seeds-wrap": "/seeds/wrap",
    "seeds-site": f"/seeds/sites/{DIRECTORY}",
    "jobs": "/jobs",
    "job": "/jobs/1",
    "settings": "/settings",
    "accounts": "/settings/accounts",
    "not-found": "/sites/nowhere.example",
}


JOBS: tuple[tuple[str, dict[str, object]], ...] = (
    ("cluster", {"site": DIRECTORY}),
    ("discover", {"cluster": f"{DIRECTORY}/1"}),
    ("bootstrap", {"core": ["name", "address", "phone"]}),
    ("extract", {"site": DIRECTORY}),
    ("entities", {"core": ["name"]}),
    ("index", {}),
)
_ORDER = "order => import('/static/siteloom.js').then(({ send }) => send('POST', '/api/jobs', order))"


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("Call it with the folder that the pictures go to.")
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="siteloom-screenshots-") as place:
        lived_in_workspace(Path(place, ".siteloom"))
        add_account(Path(place), NAME, "admin")
        with (
            closing(open_store(StoreSettings(workspace=str(Path(place, ".siteloom"))))) as store,
            serving(store) as address,
            running_browser() as browser,
        ):
            with browser.new_context(base_url=address, viewport=LAPTOP) as context:
                do_some_jobs(context.new_page())
            for screen, size in SCREENS.items():
                for colors in COLORS:
                    with browser.new_context(base_url=address, viewport=size, color_scheme=colors) as context:
                        take_pictures(context.new_page(), addresses(store), target, f"{screen}-{colors}")
    print(f"The pictures are in {target}.")


def addresses(store: Store) -> dict[str, str]:
    """Where each page is, by its name: that of an archived page depends on what is in the archive."""
    (watched,) = (one for one in store.newest_checks(f"{GUIDE}/1") if one.kind == "bellwethers")
    url = watched.content["changes"][0]["evidence"][0]["url"]
    (page_id,) = store.page_ids([PageAddress(GUIDE, url)])
    before = version_of(store.versions(url, GUIDE)[0])
    return {name: path.format(page=f"/pages/{page_id}", before=before) for name, path in PAGES.items()}


def do_some_jobs(page: Page) -> None:
    """Have things done, so that there is something to be seen of them."""
    page.goto("/")
    sign_in(page, NAME)
    expect(page.get_by_role("heading", name="Sites")).to_be_visible()
    for kind, arguments in JOBS:
        job = page.evaluate(_ORDER, {"kind": kind, "arguments": arguments})
        page.goto(job["url"])
        expect(page.locator("[data-job]")).to_have_count(0, timeout=MILLISECONDS)


def take_pictures(page: Page, paths: dict[str, str], target: Path, suffix: str) -> None:
    page.goto("/")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.screenshot(path=target / f"sign-in-{suffix}.png")
    sign_in(page, NAME)
    for name, path in paths.items():
        page.goto(path)
        # What comes later has come when nothing is asked for any more; streams of news never end.
        page.wait_for_load_state("load")
        page.wait_for_timeout(1_500)
        page.screenshot(path=target / f"{name}-{suffix}.png", caret="hide", animations="disabled")


if __name__ == "__main__":
    main()
