"""A browser without a screen: it keeps cookies and sends forms as they stand on pages."""

from __future__ import annotations

from typing import Any

import httpx
from fastapi import FastAPI
from lxml import html

from tests.coroutines import awaited


class Browser:
    """Asks an application in the same process; `origin` is the address that it has for the browser."""

    def __init__(
        self, app: FastAPI, origin: str = "http://localhost:8000", *, address: str = "127.0.0.1"
    ) -> None:
        self.app = app
        self.origin = origin
        self.address = address
        self.cookies = httpx.Cookies()
        self.token = ""

    def ask(
        self, method: str, path: str, *, headers: dict[str, str] | None = None, **body: Any
    ) -> httpx.Response:
        """The answer to one request, with no redirect followed."""
        return awaited(self._ask(method, path, headers or {}, body))

    async def _ask(
        self, method: str, path: str, headers: dict[str, str], body: dict[str, Any]
    ) -> httpx.Response:
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False, client=(self.address, 50_000))
        async with httpx.AsyncClient(
            transport=transport, base_url=self.origin, cookies=self.cookies
        ) as client:
            answer = await client.request(method, path, headers=headers, **body)
            self.cookies = client.cookies
            return answer

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.ask("GET", path, headers={name.replace("_", "-"): text for name, text in headers.items()})

    def post(self, path: str, data: dict[str, str], **headers: str) -> httpx.Response:
        """Send the form at a page, with the token of the page that was seen last."""
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        return self.ask("POST", path, headers=named, data={"csrf": self.token, **data})

    def send(self, method: str, path: str, body: object = None) -> httpx.Response:
        """Send JSON, as the scripts of pages do."""
        return self.ask(method, path, headers={"X-CSRF-Token": self.token}, json=body)

    def look(self, path: str) -> str:
        """The text of a page that is there, and from now on its token."""
        answer = self.get(path)
        assert answer.status_code == 200, answer.text
        tree = html.fromstring(answer.text)
        self.token = str(
            (tree.xpath("//input[@name='csrf']/@value | //meta[@name='csrf-token']/@content"))[0]
        )
        return " ".join(tree.text_content().split())

    def sign_in(self, name: str, password: str, **form: str) -> httpx.Response:
        self.look("/sign-in")
        answer = self.post("/sign-in", {"name": name, "password": password, **form})
        if answer.status_code == 303:
            self.look("/settings")
        return answer
