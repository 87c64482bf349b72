"""What is told of Spark before Java is started. All that starts it is in tests/bulk/test_engines.py."""

from __future__ import annotations

import socket
import sys

import pytest

from siteloom.core.errors import EngineError, MissingExtra
from siteloom.engines.spark_engine import (
    SparkEngine,
    _check_reachable,
    _engine_error,
    _main_line,
    _retrying_master,
)


def test_without_pyspark_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(MissingExtra, match=r"siteloom\[spark\]"):
        SparkEngine("local")


@pytest.mark.parametrize(
    "master", ["spark://127.0.0.1:1", "spark://127.0.0.1", "spark://", "spark://127.0.0.1:99999"]
)
def test_a_master_that_does_not_answer_is_told_at_once(master: str) -> None:
    with pytest.raises(EngineError, match=f"^No master of Spark answers at {master}: "):
        _check_reachable(master)


def test_one_master_of_several_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        _check_reachable(f"spark://127.0.0.1:1,127.0.0.1:{server.getsockname()[1]}")
    _check_reachable("yarn")


def test_tasks_are_tried_again_within_this_process_too() -> None:
    assert [
        _retrying_master(master) for master in ("local", "local[2]", "local[*]", "local[2,3]", "yarn")
    ] == [
        "local[1,8]",
        "local[2,8]",
        "local[*,8]",
        "local[2,3]",
        "yarn",
    ]


def test_of_long_traces_the_telling_line_is_told() -> None:
    trace = (
        "[JAVA_GATEWAY_EXITED] Java gateway process exited.\nWARNING: Using incubator modules\n"
        'Exception in thread "main" org.apache.spark.SparkException: Master must be something.\n'
        "\tat org.apache.spark.deploy.SparkSubmit.error(SparkSubmit.scala:1068)\n"
    )
    assert _main_line(trace) == "SparkException: Master must be something"
    assert _main_line("Gone.\n/nowhere/bin/java: No such file or directory\n") == (
        "/nowhere/bin/java: No such file or directory"
    )
    assert str(_engine_error(Exception(trace))) == (
        "Spark failed: SparkException: Master must be something. The same command goes on where it was."
    )


def test_workers_without_siteloom_are_told() -> None:
    error = Exception("Traceback\n  ...\nModuleNotFoundError: No module named 'siteloom'\n\tat java")
    assert str(_engine_error(error)) == (
        "The Python of Spark's workers has no siteloom: install Siteloom there, too, or name one that has it "
        "by --spark-conf spark.pyspark.python=FILE."
    )
