"""How many examples property tests draw."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Enough to catch an ordinary mistake on every run.
EXAMPLES = 20
THOROUGH_EXAMPLES = 200


def register_profiles() -> None:
    """Define two Hypothesis profiles and load the first.

    `repeatable` draws the same examples each time, so tests pass or fail alike for everyone. `thorough` draws
    many new ones; `make test-thorough` uses it. Neither limits time: machines may be busy.
    """
    ignored = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]  # tests make their own folders
    no_clock = settings(deadline=None, suppress_health_check=ignored)
    settings.register_profile("repeatable", no_clock, max_examples=EXAMPLES, derandomize=True)
    settings.register_profile("thorough", no_clock, max_examples=THOROUGH_EXAMPLES)
    settings.load_profile("repeatable")


def fewer_examples(divisor: int) -> settings:
    """Decorate an expensive property test, which then draws only this fraction of the profile's examples."""
    return settings(max_examples=max(1, settings().max_examples // divisor))
