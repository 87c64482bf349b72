"""`siteloom demo`: the whole life cycle on built-in web sites."""

from __future__ import annotations

from siteloom.apps.demo.story import run

__all__ = ["NAME", "run"]

NAME = "demo"
