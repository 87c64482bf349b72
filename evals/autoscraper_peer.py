"""AutoScraper, in a virtual environment of its own: it needs a BeautifulSoup of before 4.13.

With a newer one it silently returns the whole text of a page for every attribute.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from evals.learners import Answers, Found
from siteloom.dom import decode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteloom.model import Example, Page

NAME = "autoscraper"
REQUIREMENTS = ("autoscraper==1.1.14", "beautifulsoup4==4.12.3")

_ENVIRONMENT = Path(__file__).parents[1] / "build" / "venv-autoscraper"
_PYTHON = _ENVIRONMENT / "bin" / "python"
_INSTALLED = _ENVIRONMENT / ".installed"
_WORKER = Path(__file__).with_name("autoscraper_worker.py")
_INSTALL_SECONDS = 300
_SITE_SECONDS = 900


def why_missing() -> str | None:
    """Install AutoScraper where that has not been done; why it cannot be, or None."""
    if _INSTALLED.exists() and _INSTALLED.read_text(encoding="utf-8") == " ".join(REQUIREMENTS):
        return None
    try:
        for command in (
            (sys.executable, "-m", "venv", "--clear", str(_ENVIRONMENT)),
            (str(_PYTHON), "-m", "pip", "install", "--quiet", *REQUIREMENTS),
            (str(_PYTHON), "-c", "import autoscraper"),
        ):
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=_INSTALL_SECONDS)
    except subprocess.CalledProcessError as error:
        return (error.stderr.strip() or str(error)).splitlines()[-1]
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    _INSTALLED.write_text(" ".join(REQUIREMENTS), encoding="utf-8")
    return None


class AutoScraper:
    """AutoScraper's exact results; `why_missing` must have said that it is there."""

    def __call__(
        self,
        examples: Sequence[Example],
        unlabelled: Sequence[Page],  # noqa: ARG002 - it has no use for them
        pages: Sequence[Page],
    ) -> Answers:
        """Learn, then extract from `pages`."""
        work = {
            "examples": [{"html": _text(example.page), "values": {**example.values}} for example in examples],
            "pages": [_text(page) for page in pages],
        }
        done = subprocess.run(
            (str(_PYTHON), str(_WORKER)),
            input=json.dumps(work),
            check=True,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            timeout=_SITE_SECONDS,
        )
        return Answers([Found(values, {}) for values in json.loads(done.stdout)])


def _text(page: Page) -> str:
    return decode(page.html, page.charset)
