"""The formats that wrappers are exported as. Add a format here, and to `siteloom.operations.export`."""

from __future__ import annotations

from typing import Literal, get_args

ExportFormat = Literal["xslt", "xpath-json", "scrapy", "web-poet"]
FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)
