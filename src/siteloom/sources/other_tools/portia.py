"""Samples of Portia: pages with what people pointed at on them.

Early ones have the page with `data-scrapy-annotate` at each element that was pointed at, later ones a
selector for each. A spider may hold its samples, as `templates`. What is meant is read as slybot 0.13 does.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from siteloom.core.foreign_files import open_below, read_at_most
from siteloom.core.model import Failure, Page
from siteloom.html.parser import parse
from siteloom.sources.other_tools.css_selectors import Field, SelectorLayout, why_not_css
from siteloom.sources.other_tools.tool_model import PeerExample, PeerModel, Sample, each_once, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from siteloom.html.parser import Element

TOOL = "Portia"

_PLUGIN = "annotations-plugin"
_MARK = "data-scrapy-annotate"
_IGNORED = ("data-scrapy-ignore", "data-scrapy-ignore-beneath")
_TEXT = "text-content"
# What is no field: an element that only has others inside, and one that must be there but has no name.
_NO_FIELDS = ("#dummy", "#sticky", "_sticky")
_LARGEST_FILE = 50_000_000  # bytes, as many as a page may have by default
_FOLDERS_ABOVE = 4  # of a sample: its spider, the spiders, the project, and one to spare


def is_portia(found: Mapping[str, Any]) -> bool:
    """Whether an object of JSON is a sample, or a spider with its samples."""
    return isinstance(found.get("templates"), list) or (
        isinstance(found.get("url"), str)
        and bool({"annotated_body", "plugins", "original_body"} & set(found))
    )


def read_portia(found: Mapping[str, Any], file: Path) -> PeerModel:
    """The samples of a file, or of a spider."""
    left_out: list[str] = []
    names = _field_names(file)
    samples = []
    for number, sample in enumerate(found.get("templates") or [found], 1):
        if not isinstance(sample, dict) or not isinstance(sample.get("url"), str):
            left_out.append(f"Sample {number} has no url.")
            continue
        read = _sample(sample, file, names, left_out)
        if read is not None:
            samples.append(read)
    return PeerModel(TOOL, (), tuple(samples), tuple(dict.fromkeys(left_out)))


def _sample(
    sample: Mapping[str, Any], file: Path, names: Mapping[str, str], left_out: list[str]
) -> Sample | None:
    url = sample["url"]
    body = _body(sample, file, str(sample.get("body") or "original_body"), "original_body")
    if not body:
        left_out.append(f"The sample of {url} has no page: give it with its folder, as Portia keeps it.")
        return None
    page = Page.from_text(url, body)
    root = parse(page)
    if isinstance(root, Failure):
        left_out.append(f"The page of {url} cannot be read: {root.reason}.")
        return None
    extracts = _extracts(sample)
    annotated = "" if extracts else _body(sample, file, "annotated_body")
    example = (
        _from_selectors(extracts, root, names, left_out)
        if extracts
        else _from_marks(annotated, url, sample.get("extractors") or {}, names, left_out)
    )
    if example is None or not example.attributes:
        left_out.append(f"The sample of {url} has no values that can be taken over.")
        return None
    return Sample(page, example)


def _extracts(sample: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What was pointed at by selectors; before these it was by numbers, and then the marks say it, too."""
    plugins = sample.get("plugins")
    found = plugins.get(_PLUGIN, {}).get("extracts") if isinstance(plugins, dict) else None
    extracts = [each for each in found or () if isinstance(each, dict)]
    return extracts if any(each.get("selector") for each in extracts) else []


def _body(sample: Mapping[str, Any], file: Path, *keys: str) -> str:
    """A page of a sample: in the file itself, or in the folder of its name."""
    for key in keys:
        if isinstance(text := sample.get(key), str) and text.strip():
            return text
        # The sample says what it is called, and might say any path.
        beside = file.with_suffix("") / f"{PurePath(key).name}.html"
        with suppress(OSError), open_below(beside, file.parent) as page:
            return read_at_most(page, _LARGEST_FILE).decode("utf-8", "replace")
    return ""


def _field_names(file: Path) -> dict[str, str]:
    """The names of fields by their ids, from the items.json of the project; early ones have no ids."""
    for folder in file.absolute().parents[:_FOLDERS_ABOVE]:
        try:
            with open_below(folder / "items.json", folder) as file_of_items:
                items = json.loads(read_at_most(file_of_items, _LARGEST_FILE))
        except (OSError, ValueError, RecursionError):
            continue
        schemas = items.values() if isinstance(items, dict) else ()
        fields = [each.get("fields") for each in schemas if isinstance(each, dict)]
        return {
            key: str(field["name"])
            for schema in fields
            if isinstance(schema, dict)
            for key, field in schema.items()
            if isinstance(field, dict) and field.get("name")
        }
    return {}


def _from_selectors(
    extracts: list[dict[str, Any]], root: Element, names: Mapping[str, str], left_out: list[str]
) -> PeerExample | None:
    containers = {str(each.get("id")): each for each in extracts if each.get("item_container")}
    fields: dict[str, list[Field]] = {}  # by the repeated container, and under "" those of the page
    for extract in extracts:
        if extract.get("item_container"):
            continue
        if extract.get("ignore") or extract.get("ignore_beneath"):
            left_out.append("Parts of a page are to be ignored, which is not taken over: check the values.")
        selector, mode = str(extract.get("selector") or ""), extract.get("selection_mode")
        for attribute, name in _annotated(extract, names, left_out):
            if why := "it is an XPath" if mode == "xpath" else why_not_css(selector):
                left_out.append(f"{name} has a selector that cannot be read, {selector!r}: {why}.")
                continue
            # A selector that was written by hand means all that it finds.
            field = Field(name, (selector,), attribute, extract.get("repeated") is True or mode == "css")
            fields.setdefault(_repeated_around(extract, containers), []).append(field)
    layouts = []
    for place, some in fields.items():
        container = containers.get(place, {})
        scope = str(container.get("selector") or "")
        if place and (container.get("siblings") or why_not_css(scope)):
            left_out.append(
                f"The records at {scope!r} are of several elements each, and cannot be taken over."
            )
            continue
        layouts.append(SelectorLayout(tuple(some), scope, is_list=bool(place)))
    if len(layouts) > 1 and any(layout.is_list for layout in layouts):
        beside = [name for layout in layouts if not layout.is_list for name in layout.attributes]
        left_out.extend(f"{name} stands beside a list, whose records are taken over." for name in beside)
        layouts = [layout for layout in layouts if layout.is_list]
    found = (layout.on(root) for layout in layouts)
    return max(found, key=lambda example: len(example.attributes), default=None)


def _repeated_around(extract: Mapping[str, Any], containers: Mapping[str, Mapping[str, Any]]) -> str:
    """The nearest container of a field of which there are several; empty if there is none."""
    passed: set[str] = set()
    name = str(extract.get("container_id"))
    while name in containers and name not in passed:
        if containers[name].get("repeated"):
            return name
        passed.add(name)
        name = str(containers[name].get("container_id"))
    return ""


def _annotated(
    extract: Mapping[str, Any], names: Mapping[str, str], left_out: list[str]
) -> Iterator[tuple[str, str]]:
    """What was pointed at of an element, an HTML attribute or "" for its text, and what it was called."""
    # Where an element has an HTML attribute `content`, another word stands for its text.
    texts = (_TEXT, extract.get(_TEXT) or "content")
    said = (
        list(extract["data"].values())
        if isinstance(extract.get("data"), dict)
        else [{"attribute": key, "field": field} for key, field in (extract.get("annotations") or {}).items()]
    )
    for each in said:
        attribute, field = each.get("attribute"), each.get("field")
        if not isinstance(field, str) or not field or field.startswith(_NO_FIELDS):
            continue
        name = names.get(field, field)
        if each.get("extractors") or extract.get("pre_text") or extract.get("post_text"):
            left_out.append(f"{name} is part of a text, by a pattern that is not taken over.")
        else:
            yield "" if attribute in texts else str(attribute), name


def _from_marks(
    body: str,
    url: str,
    extractors: Mapping[str, Any],
    names: Mapping[str, str],
    left_out: list[str],
) -> PeerExample | None:
    root = parse(Page.from_text(url, body)) if body.strip() else None
    if root is None or isinstance(root, Failure):
        return None
    values: dict[str, list[str]] = {}
    for element in root.iter("{*}*"):
        mark = element.get(_MARK)
        if mark is None:
            continue
        try:
            told = json.loads(unquote(mark))
        except (ValueError, RecursionError):
            left_out.append(f"A mark on the sample of {url} cannot be read: {mark[:60]!r}.")
            continue
        for each in told if isinstance(told, list) else [told]:
            for attribute, name in _annotated(each, names, left_out):
                if each.get("variant"):
                    left_out.append(f"{name} belongs to a variant, of which examples know nothing.")
                elif extractors.get(name):
                    left_out.append(f"{name} is part of a text, by a pattern that is not taken over.")
                elif not attribute and _has_ignored(element):
                    left_out.append(f"{name} has parts that are to be ignored, and is not taken over.")
                else:
                    values.setdefault(name, []).append(shown(element, attribute))
    return PeerExample({name: found for name, texts in values.items() if (found := each_once(texts))})


def _has_ignored(element: Element) -> bool:
    return any(each.get(name) is not None for each in element.iter("{*}*") for name in _IGNORED)
