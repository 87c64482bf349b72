"""The web application: pages for people, an API for programs, on the same functions as the command line."""

from siteloom.server.app import create_app

__all__ = ["create_app"]
