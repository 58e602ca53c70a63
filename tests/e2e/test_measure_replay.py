"""The measurement of reinforcement that the documentation quotes: it runs, and says where it cannot tell."""

import pytest

from tests.bench.measure_replay import demo_figures, simulated_figures


def test_demo_is_too_little_to_tell_what_reinforcement_does() -> None:
    """Its recalls are recorded and its uses known; three recalls decide nothing."""
    figures = demo_figures()
    assert (figures["outcome"], figures["recalls"], figures["telling"]) == ("too_little_data", 3, 2)


@pytest.mark.slow
def test_simulated_sessions_are_replayed() -> None:
    """A small part of it: evidence came of the sessions, and both kinds of questions were ranked."""
    figures = simulated_figures(sessions=20, names=["ferrybook"])
    replay, asked, never = figures["replay"], figures["asked_before"], figures["never_asked"]
    assert isinstance(replay, dict)
    assert isinstance(asked, dict)
    assert isinstance(never, dict)
    assert (replay["outcome"], figures["sessions"]) == ("too_little_data", 20)
    assert replay["telling"] > 5
    assert asked["given"] != asked["without"]
    assert never["questions"] > 5
