"""What `import siteloom` gives, and what it costs."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import siteloom
from siteloom.apps.cli.verbs import VERBS
from siteloom.core import errors

HEAVY = {
    "alembic",
    "fastwarc",
    "lxml",
    "numba",
    "numpy",
    "pyarrow",
    "resiliparse",
    "rich",
    "sqlalchemy",
    "typer",
    "zstandard",
}


def modules_after(program: str) -> set[str]:
    """The top-level packages that a fresh interpreter has loaded after a program."""
    report = "\nimport json, sys; print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    done = subprocess.run(
        [sys.executable, "-c", program + report], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))


def error_classes() -> list[type]:
    return [
        value
        for value in vars(errors).values()
        if inspect.isclass(value) and value.__module__ == errors.__name__
    ]


def test_the_public_names_are_sorted_and_unique() -> None:
    assert list(siteloom.__all__) == sorted(set(siteloom.__all__))


@pytest.mark.parametrize("name", siteloom.__all__)
def test_a_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(siteloom, name)
    documentation = inspect.getdoc(value) or ""
    assert len(documentation) > 20
    assert not documentation.startswith(f"{name}(")  # what a dataclass writes for itself


def public_functions() -> Iterator[tuple[str, Callable[..., object]]]:
    """The public functions, and what the public classes have to be called, by their names."""
    for name in siteloom.__all__:
        value = getattr(siteloom, name)
        if not inspect.isclass(value):
            yield name, value
            continue
        for member, found in inspect.getmembers_static(value):
            # Properties, cached ones, and methods of the class hold the function that they call.
            names = ("fget", "func", "__func__")
            function = next((getattr(found, one) for one in names if hasattr(found, one)), found)
            is_public = member == "__init__" or not member.startswith("_")
            if is_public and inspect.isfunction(function) and function.__module__.startswith("siteloom."):
                yield f"{name}.{member}", function


FUNCTIONS = dict(public_functions())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_public_is_typed(name: str) -> None:
    function = FUNCTIONS[name]
    hints = hints_of(function)
    parameters = [one for one in inspect.signature(function).parameters if one not in ("self", "cls")]
    assert set(parameters) <= hints.keys()
    assert "return" in hints


@pytest.mark.parametrize("name", [name for name in siteloom.__all__ if name[0].isupper()])
def test_the_fields_of_what_is_public_are_typed(name: str) -> None:
    value = getattr(siteloom, name)
    hints = hints_of(value)
    assert set(getattr(value, "__match_args__", ())) <= hints.keys()


def hints_of(value: Any) -> dict[str, Any]:
    """What the parameters or fields of something public are, as anyone can ask."""
    optional = {"pa": pa}  # which read_records gives, but imports only when it is called
    return typing.get_type_hints(value, localns=optional)


def test_each_public_name_is_in_the_reference() -> None:
    text = (Path(__file__).parents[1] / "docs/reference/python.md").read_text(encoding="utf-8")
    headings = re.findall(r"^### (\w+)$", text, re.MULTILINE)
    assert sorted(headings) == sorted(siteloom.__all__)


def test_the_public_names_are_listed() -> None:
    assert set(siteloom.__all__) <= set(dir(siteloom))


def test_all_of_it_can_be_imported_at_once() -> None:
    assert "siteloom" in modules_after("from siteloom import *\nread_pages, Page")


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'siteloom' has no attribute 'nothing'"):
        siteloom.nothing  # noqa: B018


def test_importing_siteloom_loads_nothing_heavy() -> None:
    assert not modules_after("import siteloom") & HEAVY


def test_the_values_load_nothing_heavy() -> None:
    assert (
        not modules_after(
            "import siteloom; siteloom.Page('u', b''), siteloom.Failure, siteloom.SiteloomError"
        )
        & HEAVY
    )


def test_reading_pages_loads_neither_a_database_nor_pyarrow() -> None:
    assert not modules_after("import siteloom; siteloom.read_pages") & {"pyarrow", "sqlalchemy", "typer"}


def test_the_version_is_a_version() -> None:
    assert [part.isdecimal() for part in siteloom.__version__.split(".")] == [True] * 3


@pytest.mark.parametrize("error", error_classes(), ids=lambda error: error.__name__)
def test_every_error_is_in_the_tree_and_documented(error: type) -> None:
    assert issubclass(error, siteloom.SiteloomError)
    assert error.__name__ in (errors.__doc__ or "")
    assert error.__doc__
    assert getattr(error, "exit_status", None) in (1, 2)


def test_a_missing_extra_says_what_to_install() -> None:
    error = errors.MissingExtra("Parquet", "parquet")
    assert error.extra == "parquet"
    assert str(error) == "Parquet needs the extra 'parquet': install it with pip install 'siteloom[parquet]'."


def test_no_module_hides_a_public_function() -> None:
    script = (
        "import siteloom, siteloom.operations, siteloom.templates.clustering\n"
        "for _ in range(2):\n"
        "    for name in siteloom.__all__:\n"
        "        assert callable(getattr(siteloom, name)), name\n"
        "    siteloom.cluster(iter([siteloom.Page('http://a.example/', b'<p>x')]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


# What stands here is public: docs/reference/compatibility.md says how long a name must have been deprecated
# before it may be taken out.
PUBLISHED = (
    "Attribute Block Bootstrapped Change Cluster Clustering DiscoveredTable Evidence Example ExampleNotFound "
    "Failure Footprint Page Provenance Record Relearned Resource Seed SegmentTable SiteloomError Template "
    "Watch Withheld Wrapper bootstrap cluster discover learn monitor read_pages read_records relearn sample "
    "watch"
).split()
PUBLISHED_VERBS = (
    "demo init ingest crawl status cluster template discover clean sample examples learn extract export "
    "explain watch monitor relearn history rollback seeds bootstrap entities search serve user backup "
    "forget doctor config"
).split()


def test_no_public_name_is_taken_out() -> None:
    assert set(PUBLISHED) <= set(siteloom.__all__)


def test_no_verb_is_taken_out() -> None:
    assert set(PUBLISHED_VERBS) <= set(VERBS)


def test_what_is_added_is_public_from_then_on() -> None:
    assert set(siteloom.__all__) <= set(PUBLISHED), "Add the new names to PUBLISHED."
    assert set(VERBS) <= set(PUBLISHED_VERBS), "Add the new verbs to PUBLISHED_VERBS."
