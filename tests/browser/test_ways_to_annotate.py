"""What a person can do to say what is where: all of a text or part of it, several values, none, records."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect
from playwright.sync_api import Page as BrowserPage

from siteloom.model import Page

from ..cli.command import Command
from .annotator import Annotator
from .conftest import Overheard
from .serving import GUIDE, make_workspace, some_pages

SHOP = "plants.example"
KINDS = ["Fern", "Sedge", "Yarrow", "Teasel", "Bracken", "Sorrel", "Mallow", "Campion"]
COLOURS = ["white", "yellow", "purple", "green"]


class Plant:
    """What is true of a page of the shop."""

    def __init__(self, number: int) -> None:
        self.url = f"https://{SHOP}/plants/{number}"
        self.name = f"{KINDS[number]} of the {COLOURS[number % 4].title()} Hills"
        self.price = f"{number * 7 + 12}.{number}0"
        self.colours = [COLOURS[(number + step) % 4] for step in range(1 + number % 3)]
        self.height = f"{number + 2} feet" if number % 4 != 1 else None

    def html(self) -> str:
        colours = "".join(f"<li>{colour}</li>" for colour in self.colours)
        height = f"<p>Grows to <em>{self.height}</em></p>" if self.height else ""
        return (
            f"<!DOCTYPE html><html><head><title>{self.name}</title></head><body><h1><b>{self.name}</b></h1>"
            f"<p class=terms>Only {self.price} euros each, while stocks last.</p>"
            f"<ul class=colours>{colours}</ul>{height}</body></html>"
        )


PLANTS = {plant.url: plant for plant in map(Plant, range(len(KINDS)))}


@pytest.fixture(scope="session")
def shop_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop") / ".siteloom"
    make_workspace(folder, [Page.from_text(plant.url, plant.html()) for plant in PLANTS.values()])
    return folder
