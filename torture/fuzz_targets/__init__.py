"""What is fuzzed: functions that take any bytes, and raise only if something is wrong with Siteloom."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torture.fuzz_targets.target import Target

_MODULES = ("pages", "archives", "files", "workspaces", "addresses")


def load_target(name: str) -> Target:
    """A target by its name, such as `pages.page_tree`; nothing is imported but what it needs."""
    module, _, function = name.partition(".")
    return next(target for target in _targets(module) if target.run.__name__ == function)


def all_targets() -> dict[str, Target]:
    """All targets by their names."""
    return {f"{module}.{target.run.__name__}": target for module in _MODULES for target in _targets(module)}


def _targets(module: str) -> tuple[Target, ...]:
    targets: tuple[Target, ...] = import_module(f"torture.fuzz_targets.{module}").TARGETS
    return targets
