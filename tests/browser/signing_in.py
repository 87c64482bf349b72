"""Accounts for tests, and signing in as a person does."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from tests.apps.cli.command import Command

PASSWORD = "warp and weft 42"  # of every account


def add_account(folder: Path, name: str, role: str) -> None:
    """Make an account of the workspace in a folder with the command line."""
    added = Command(folder)("user", "add", name, "--role", role, stdin=f"{PASSWORD}\n")
    assert added.returncode == 0, added.stderr


def sign_in(page: Page, name: str, password: str = PASSWORD) -> None:
    """Fill in the form to sign in, which is what the page shows to strangers."""
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


def enter(page: Page, name: str) -> None:
    """Open the first page and sign in."""
    page.goto("/")
    sign_in(page, name)
    expect(page.get_by_role("banner").get_by_text(name, exact=True)).to_be_visible()
