"""Fuzzing: each target gets bytes that a fuzzer chooses by which code they reach.

    python -m torture.fuzzing pages.page_tree FOLDER -max_total_time=60

runs one target alone, with the arguments of libFuzzer; what it found stands in files in the folder.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torture.fuzz_targets import all_targets, load_target
from torture.ordeals import Ordeal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torture.fuzz_targets.target import Target
    from torture.ordeals import Plan

TITLE = "Fuzzing"

KEPT_FAULTS = Path("build/torture/faults")
"""Where inputs are kept that Siteloom did not bear."""

# Seconds of a target at full effort: all of them take less than half an hour.
_SECONDS = 50
# A run takes milliseconds; one that takes so many seconds hangs.
_LONGEST_RUN = 20
# What the libraries take before the first run is a fourth of it.
_MOST_MEGABYTES = 2_048
# To load what is to be fuzzed takes a while, since all of it is rewritten to tell where it was: on a machine
# that is busy with other things, minutes.
_SECONDS_TO_START = 600

_COMPILED = (
    "html.page_scan",
    "html.tag_scanner",
    "html.text_scanner",
    "learning.known_records.similarity_join",
    "templates.clustering.description_length",
    "templates.clustering.tree_distance",
    "templates.clustering.vertex",
)
_RUNS = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
_REACHED = re.compile(r"\bft: (\d+) corp: (\d+)/")
_EXCEPTION = re.compile(r"=== Uncaught Python exception: ===\n(.*)")
_FAULTS = ("crash-", "timeout-", "oom-", "leak-")


class Fuzzed(NamedTuple):
    """What came of fuzzing one target; `reached` counts what libFuzzer calls features."""

    runs: int
    reached: int
    corpus: int
    fault: str
    faulty_inputs: tuple[Path, ...]


def ordeals(plan: Plan) -> Iterator[Ordeal]:
    """Fuzz all targets, one after the other."""
    if find_spec("atheris") is None:
        yield Ordeal(
            "fuzzing", "not at all", "atheris is not installed: pip install --group torture", False, 0
        )
        return
    for name, target in all_targets().items():
        start = time.monotonic()
        fuzzed = fuzz(name, target.seeds(), target.words, plan)
        kept = [str(_kept(path, name)) for path in fuzzed.faulty_inputs]
        reached = f"{fuzzed.reached:,} features of code reached by {fuzzed.corpus:,} inputs"
        yield Ordeal(
            f"`{name}`: {_first_line(target)}",
            f"{fuzzed.runs:,} runs",
            f"{fuzzed.fault} ({', '.join(kept) or 'no input'})" if fuzzed.fault else f"no fault; {reached}",
            not fuzzed.fault,
            time.monotonic() - start,
        )


def _first_line(target: Target) -> str:
    line = (target.run.__doc__ or "").strip().partition("\n")[0].rstrip(".")
    return line[:1].lower() + line[1:]


def _kept(path: Path, name: str) -> Path:
    KEPT_FAULTS.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(path, KEPT_FAULTS / f"{name}-{path.name}"))


def fuzz(
    name: str, seeds: Sequence[bytes], words: Sequence[bytes], plan: Plan, module: str = "torture.fuzzing"
) -> Fuzzed:
    """Fuzz a target in a process of its own, for so long as the plan has it.

    `module` is what is run to do so, with the name of the target and the arguments of libFuzzer.
    """
    seconds = plan.times(_SECONDS)
    folder = plan.folder / name
    corpus, faults, scratch = folder / "corpus", folder / "faults", folder / "scratch"
    for one in (corpus, faults, scratch):
        one.mkdir(parents=True)
    for number, seed in enumerate(seeds):
        (corpus / f"seed-{number}").write_bytes(seed)
    dictionary = folder / "words"
    dictionary.write_text("".join(f'"{_escaped(word)}"\n' for word in words), encoding="ascii")
    options = {
        "max_total_time": seconds,
        "timeout": _LONGEST_RUN,
        "rss_limit_mb": _MOST_MEGABYTES,
        "seed": plan.seed,
        **({"dict": dictionary} if words else {}),  # an empty one is refused
        "artifact_prefix": f"{faults}/",
        "print_final_stats": 1,
    }
    arguments = [f"-{option}={value}" for option, value in options.items()]
    try:
        done = subprocess.run(
            [sys.executable, "-m", module, name, str(corpus), *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=seconds + _SECONDS_TO_START + _LONGEST_RUN,
            env={**os.environ, "TMPDIR": str(scratch)},
        )
        told, status = done.stdout + done.stderr, done.returncode
    except subprocess.TimeoutExpired as error:
        told, status = _text(error.stdout) + _text(error.stderr), None
    return _fuzzed(told, status, faults)


def _text(output: str | bytes | None) -> str:
    return output.decode("utf-8", "replace") if isinstance(output, bytes) else output or ""


def _escaped(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)


def _fuzzed(told: str, status: int | None, faults: Path) -> Fuzzed:
    found = tuple(sorted(path for path in faults.iterdir() if path.name.startswith(_FAULTS)))
    runs, reached = _RUNS.search(told), _REACHED.findall(told)
    exception = _EXCEPTION.search(told)
    fault = ""
    if status is None:
        fault = "it did not end"
    elif exception:
        fault = exception[1].strip()
    elif found:
        fault = found[0].name.partition("-")[0]
    elif status or not runs:
        fault = f"the fuzzer ended with status {status}: {told.strip()[-300:]}"
    features, inputs = reached[-1] if reached else ("0", "0")
    return Fuzzed(int(runs[1]) if runs else 0, int(features), int(inputs), fault, found)


def run_under_fuzzer(
    load: Callable[[], Callable[[bytes], None]], arguments: Sequence[str], package: str = "siteloom"
) -> None:
    """Fuzz what `load` gives, in this process, which ends with it.

    What `load` imports of the package tells the fuzzer where it was.
    """
    import atheris  # type: ignore[import-untyped]  # noqa: PLC0415 - only here, and not installed everywhere

    # Numba compiles functions from their bytecode, which must not change: so these modules are imported
    # before.
    for module in _COMPILED:
        import_module(f"siteloom.{module}")
    with atheris.instrument_imports(include=[package]):
        run = load()
    atheris.Setup([sys.argv[0], *arguments], run)
    atheris.Fuzz()


def _loaded(name: str) -> Callable[[bytes], None]:
    target = load_target(name)
    for seed in target.seeds():  # what is loaded when it is first used is rewritten, too
        target.run(seed)
    return target.run


if __name__ == "__main__":
    run_under_fuzzer(lambda: _loaded(sys.argv[1]), sys.argv[2:])
