"""Measures the CPU time of each test file, and shows the most expensive ones after the tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator

import psutil
import pytest

# Enough to see which files grow, few enough to read.
SHOWN_FILES = 10

PROPERTY = "cpu_seconds"


class CpuTime:
    """A pytest plugin that measures files in workers of pytest-xdist, too.

    The time of a file includes all processes that it started: browsers, servers, commands. A process that
    several files share counts for each of them with what it did meanwhile.
    """

    def __init__(self) -> None:
        self._last_reading = 0.0
        self._is_last_of_file = False
        self._seconds_by_file: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Remember whether the file of a test is complete with it: looking at processes takes a while."""
        self._is_last_of_file = nextitem is None or nextitem.path != item.path

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the CPU time of a file to the last report of its last test."""
        report = yield
        if call.when == "teardown" and self._is_last_of_file:
            reading = cpu_seconds()
            report.user_properties.append((PROPERTY, reading - self._last_reading))
            self._last_reading = reading
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up what workers report."""
        file = report.nodeid.partition("::")[0]
        for name, seconds in report.user_properties:
            if name == PROPERTY:
                assert isinstance(seconds, float)
                self._seconds_by_file[file] += seconds

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the total and the most expensive files."""
        total = sum(self._seconds_by_file.values())
        terminalreporter.section("CPU time")
        terminalreporter.write_line(f"{total:8.1f} s  all {len(self._seconds_by_file)} files")
        most_expensive = sorted(self._seconds_by_file.items(), key=lambda entry: -entry[1])
        for file, seconds in most_expensive[:SHOWN_FILES]:
            terminalreporter.write_line(f"{seconds:8.1f} s  {file}")


def cpu_seconds() -> float:
    """User and system time of this process and of all processes below it, ended ones included."""
    this = psutil.Process()
    seconds = 0.0
    for process in [this, *this.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue  # its parent has counted it meanwhile, or will at the next reading
        seconds += times.user + times.system + times.children_user + times.children_system
    return seconds
