"""Read samples of Portia: pages with annotations.

In early versions, the page has `data-scrapy-annotate` at each annotated element; later ones have a selector
for each. A spider may contain its samples, as `templates`. Annotations are interpreted as in slybot 0.13.
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
from siteloom.sources.other_tools.tool_model import PeerExample, PeerModel, Sample, distinct_texts, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from siteloom.html.parser import Element

TOOL = "Portia"

_PLUGIN = "annotations-plugin"
_MARK = "data-scrapy-annotate"
_IGNORED = ("data-scrapy-ignore", "data-scrapy-ignore-beneath")
_TEXT = "text-content"
# Annotations that are not fields: elements that only contain others, and required ones without a name.
_NO_FIELDS = ("#dummy", "#sticky", "_sticky")
_LARGEST_FILE = 50_000_000  # bytes, the default limit of a page
_FOLDERS_ABOVE = 4  # of a sample: its spider, the spiders, the project, and one to spare


def is_portia(content: Mapping[str, Any]) -> bool:
    """Return whether a JSON object is a sample, or a spider with its samples."""
    return isinstance(content.get("templates"), list) or (
        isinstance(content.get("url"), str)
        and bool({"annotated_body", "plugins", "original_body"} & set(content))
    )


def read_portia(content: Mapping[str, Any], file: Path) -> PeerModel:
    """Read the samples of a file, or of a spider."""
    left_out: list[str] = []
    names = _field_names(file)
    samples = []
    for number, sample in enumerate(content.get("templates") or [content], 1):
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
        else _from_markup(annotated, url, sample.get("extractors") or {}, names, left_out)
    )
    if example is None or not example.attributes:
        left_out.append(f"The sample of {url} has no values that can be taken over.")
        return None
    return Sample(page, example)


def _extracts(sample: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the annotations with selectors; older ones have numbers, and are also marked in the page."""
    plugins = sample.get("plugins")
    extracts = plugins.get(_PLUGIN, {}).get("extracts") if isinstance(plugins, dict) else None
    annotations = [extract for extract in extracts or () if isinstance(extract, dict)]
    return annotations if any(extract.get("selector") for extract in annotations) else []


def _body(sample: Mapping[str, Any], file: Path, *keys: str) -> str:
    """Return the page of a sample: from the file itself, or from the folder of its name."""
    for key in keys:
        if isinstance(text := sample.get(key), str) and text.strip():
            return text
        # The name comes from the sample, and could be any path.
        beside = file.with_suffix("") / f"{PurePath(key).name}.html"
        with suppress(OSError), open_below(beside, file.parent) as page:
            return read_at_most(page, _LARGEST_FILE).decode("utf-8", "replace")
    return ""


def _field_names(file: Path) -> dict[str, str]:
    """Return the names of fields by id, from the project's items.json; early versions have no ids."""
    for folder in file.absolute().parents[:_FOLDERS_ABOVE]:
        try:
            with open_below(folder / "items.json", folder) as file_of_items:
                items = json.loads(read_at_most(file_of_items, _LARGEST_FILE))
        except (OSError, ValueError, RecursionError):
            continue
        schemas = items.values() if isinstance(items, dict) else ()
        fields = [schema.get("fields") for schema in schemas if isinstance(schema, dict)]
        return {
            key: str(field["name"])
            for schema_fields in fields
            if isinstance(schema_fields, dict)
            for key, field in schema_fields.items()
            if isinstance(field, dict) and field.get("name")
        }
    return {}


def _from_selectors(
    extracts: list[dict[str, Any]], root: Element, names: Mapping[str, str], left_out: list[str]
) -> PeerExample | None:
    containers = {str(extract.get("id")): extract for extract in extracts if extract.get("item_container")}
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
            # A selector written by hand stands for all elements that it selects.
            field = Field(name, (selector,), attribute, extract.get("repeated") is True or mode == "css")
            fields.setdefault(_repeated_around(extract, containers), []).append(field)
    layouts = []
    for container_id, container_fields in fields.items():
        container = containers.get(container_id, {})
        scope = str(container.get("selector") or "")
        if container_id and (container.get("siblings") or why_not_css(scope)):
            left_out.append(
                f"The records at {scope!r} are of several elements each, and cannot be taken over."
            )
            continue
        layouts.append(SelectorLayout(tuple(container_fields), scope, is_list=bool(container_id)))
    if len(layouts) > 1 and any(layout.is_list for layout in layouts):
        page_attributes = [name for layout in layouts if not layout.is_list for name in layout.attributes]
        left_out.extend(
            f"{name} stands beside a list, whose records are taken over." for name in page_attributes
        )
        layouts = [layout for layout in layouts if layout.is_list]
    examples = (layout.on(root) for layout in layouts)
    return max(examples, key=lambda example: len(example.attributes), default=None)


def _repeated_around(extract: Mapping[str, Any], containers: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the nearest repeated container of a field; empty if there is none."""
    visited: set[str] = set()
    name = str(extract.get("container_id"))
    while name in containers and name not in visited:
        if containers[name].get("repeated"):
            return name
        visited.add(name)
        name = str(containers[name].get("container_id"))
    return ""


def _annotated(
    extract: Mapping[str, Any], names: Mapping[str, str], left_out: list[str]
) -> Iterator[tuple[str, str]]:
    """Yield the annotated HTML attributes of an element, "" for its text, each with its field name."""
    # If an element has an HTML attribute `content`, another word stands for its text.
    texts = (_TEXT, extract.get(_TEXT) or "content")
    annotations = (
        list(extract["data"].values())
        if isinstance(extract.get("data"), dict)
        else [{"attribute": key, "field": field} for key, field in (extract.get("annotations") or {}).items()]
    )
    for annotation in annotations:
        attribute, field = annotation.get("attribute"), annotation.get("field")
        if not isinstance(field, str) or not field or field.startswith(_NO_FIELDS):
            continue
        name = names.get(field, field)
        if annotation.get("extractors") or extract.get("pre_text") or extract.get("post_text"):
            left_out.append(f"{name} is part of a text, by a pattern that is not taken over.")
        else:
            yield "" if attribute in texts else str(attribute), name


def _from_markup(
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
            annotations = json.loads(unquote(mark))
        except (ValueError, RecursionError):
            left_out.append(f"A mark on the sample of {url} cannot be read: {mark[:60]!r}.")
            continue
        for annotation in annotations if isinstance(annotations, list) else [annotations]:
            for attribute, name in _annotated(annotation, names, left_out):
                if annotation.get("variant"):
                    left_out.append(f"{name} belongs to a variant, of which examples know nothing.")
                elif extractors.get(name):
                    left_out.append(f"{name} is part of a text, by a pattern that is not taken over.")
                elif not attribute and _has_ignored(element):
                    left_out.append(f"{name} has parts that are to be ignored, and is not taken over.")
                else:
                    values.setdefault(name, []).append(shown(element, attribute))
    return PeerExample(
        {name: distinct for name, texts in values.items() if (distinct := distinct_texts(texts))}
    )


def _has_ignored(element: Element) -> bool:
    return any(descendant.get(name) is not None for descendant in element.iter("{*}*") for name in _IGNORED)
