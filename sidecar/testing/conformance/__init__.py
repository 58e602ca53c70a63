"""What every transcript reader must do, as checks to run under pytest or any other runner. For authors of plugins.

    @pytest.mark.parametrize("check", conformance_checks(CASE), ids=str)
    def test_conformance(check):
        check.run()

`CASE` is a `ClientCase`: the plugin, sample transcripts with what is to be found in them, and a way to quote a text as
the client would. See docs/clients/adding-a-client.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sidecar.errors import InvalidInputError
from sidecar.testing.conformance import checks
from sidecar.testing.conformance.cases import (
    CANNOT_RECORD,
    NOTHING,
    UNANSWERED,
    UNHEARD_OF,
    ClientCase,
    Sample,
    SampleFile,
    shows,
    unknown,
)

__all__ = [
    "CANNOT_RECORD",
    "NOTHING",
    "UNANSWERED",
    "UNHEARD_OF",
    "Check",
    "ClientCase",
    "Sample",
    "SampleFile",
    "conformance_checks",
    "shows",
    "unknown",
]

_OF_THE_CASE = (
    checks.plugin_is_sound,
    checks.quotations_are_no_calls,
    checks.unheard_of_records_are_counted,
    checks.damage_costs_only_its_line,
    checks.any_state_does_no_harm,
)
_OF_EACH_SAMPLE = (
    checks.reads_what_is_there,
    checks.ids_are_sound,
    checks.every_cut_ends_the_same,
    checks.reading_is_pure,
    checks.repetitions_add_nothing,
    checks.order_of_results_does_not_matter,
)


@dataclass(frozen=True)
class Check:
    """One check of one plugin. `run` fails with an AssertionError that says what is wrong."""

    name: str
    run: Callable[[], None]

    def __str__(self) -> str:
        return self.name


def conformance_checks(case: ClientCase) -> list[Check]:
    """Return all checks of a case: those of the plugin as a whole, and those of each sample.

    Raises:
        InvalidInputError: If there is no sample.
    """
    if not case.samples:
        raise InvalidInputError("samples", 0, "one sample at least: without any, nothing is checked")
    found = [Check(f"{case.plugin.name}-{check.__name__}", partial(check, case)) for check in _OF_THE_CASE]
    for sample in case.samples:
        found += [
            Check(f"{case.plugin.name}-{sample.name}-{check.__name__}", partial(check, sample, case.plugin))
            for check in _OF_EACH_SAMPLE
        ]
    return found
