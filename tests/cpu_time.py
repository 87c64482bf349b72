"""Adds up the CPU time of each test file, and shows the most expensive ones after the tests."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator

import pytest

# Enough to see which files grow, few enough to read.
SHOWN_FILES = 10

PROPERTY = "cpu_seconds"


class CpuTime:
    """A pytest plugin that measures tests in workers of pytest-xdist, too.

    The time of a test includes its fixtures and all processes that it started and waited for. A process that
    several tests share counts for the test that ends it.
    """

    def __init__(self) -> None:
        self._last_reading = cpu_seconds()
        self._seconds_by_file: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach to a report the CPU time since the report before."""
        report = yield
        reading = cpu_seconds()
        report.user_properties.append((PROPERTY, reading - self._last_reading))
        self._last_reading = reading
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the time of a report to that of its file."""
        file = report.nodeid.partition("::")[0]
        self._seconds_by_file[file] += sum(
            seconds for name, seconds in report.user_properties if name == PROPERTY
        )

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the total and the most expensive files."""
        total = sum(self._seconds_by_file.values())
        terminalreporter.section("CPU time")
        terminalreporter.write_line(f"{total:8.1f} s  all {len(self._seconds_by_file)} files")
        for file, seconds in self._seconds_by_file.most_common(SHOWN_FILES):
            terminalreporter.write_line(f"{seconds:8.1f} s  {file}")


def cpu_seconds() -> float:
    """User and system time of this process and of all processes that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
