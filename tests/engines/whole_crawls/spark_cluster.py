"""A real cluster of Spark on this machine: a standalone master and two workers, all on the loopback."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark

from tests.patience import wait_until

WORKERS = 2

# Small and quick to start: the tests have little to do.
JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.cores.max": str(WORKERS),
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.pyspark.python": sys.executable,
    "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[3]),  # what the tests do in tasks
}
_CORES, _MEMORY = 1, "600m"  # of a worker: one application has room at a time
_DAEMON_MEMORY = "256m"
# The master chooses its ports and names them in its log.
_MASTER_STARTED = re.compile(r"Starting Spark master at (\S+)$", re.MULTILINE)
_WORKER_REGISTERED = re.compile(r"Registering worker (\S+)")


class Cluster:
    """The processes of a cluster."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.url = ""
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start the master, and the workers when it is there."""
        self._launch("master.Master", "--port", "0", "--webui-port", "0")
        (self.url,) = self._wait_for(_MASTER_STARTED, 1)
        for _ in range(WORKERS):
            self.start_worker()
        self._wait_for(_WORKER_REGISTERED, WORKERS)

    def start_worker(self) -> None:
        folder = str(self._folder / f"worker-{len(self.processes)}")
        self._launch(
            "worker.Worker", "--cores", str(_CORES), "--memory", _MEMORY, "--webui-port", "0",
            "--work-dir", folder, self.url,
        )  # fmt: skip

    def kill_worker_above(self, process: int) -> None:
        """Kill the worker that a process is a descendant of."""
        above = set(_ancestors(process))
        (worker,) = [one for one in self.processes[1:] if one.pid in above]
        worker.kill()
        worker.wait()

    def end(self) -> None:
        """End all processes, whatever they are doing."""
        for one in reversed(self.processes):
            one.kill()
            one.wait()

    def _launch(self, name: str, *arguments: str) -> None:
        home = Path(pyspark.__file__).parent
        # As the script spark-class would, which starts another Java to find that out.
        command = [
            "java",
            "-cp",
            f"{home}/jars/*",
            f"-Xmx{_DAEMON_MEMORY}",
            f"org.apache.spark.deploy.{name}",
        ]
        with (self._folder / f"log-{len(self.processes)}").open("wb") as log:
            self.processes.append(
                subprocess.Popen(
                    [*command, "--host", "127.0.0.1", *arguments],
                    env={**environment(), "SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13"},
                    stdout=log,
                    stderr=log,
                )
            )

    def _wait_for(self, line: re.Pattern[str], count: int) -> list[str]:
        """Wait until the master's log has so many lines of a kind; returns what they name."""
        wait_until(lambda: len(self._named_in_log(line)) >= count)
        return self._named_in_log(line)

    def _named_in_log(self, line: re.Pattern[str]) -> list[str]:
        assert all(process.poll() is None for process in self.processes), self._logs()
        return line.findall((self._folder / "log-0").read_text(errors="replace"))

    def _logs(self) -> str:
        ends = [file.read_text(errors="replace")[-2_000:] for file in self._folder.glob("log-*")]
        return "The cluster of Spark did not start.\n" + "\n".join(ends)


@contextmanager
def running_cluster(folder: Path) -> Iterator[Cluster]:
    """A cluster that has its workers."""
    cluster = Cluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.end()


def environment() -> Mapping[str, str]:
    """The variables of all that starts Java."""
    return {
        **os.environ,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JDK_JAVA_OPTIONS": JAVA_OPTIONS,
    }


def _ancestors(process: int) -> Iterator[int]:
    while process > 1:
        yield process
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
