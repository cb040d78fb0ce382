"""Whole lives of a step under lost answers, crashes after any action, two launchers at once, and any order of inputs."""

from __future__ import annotations

from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from step_talk import plan
from step_world import DELETED, Script, World

from jobset_steps.outcome import Verdict
from jobset_steps.supervisor.inputs import EndCause

_ends = st.sampled_from(("crash", "crash", "disrupt", "fatal", "reclaim", "succeed"))
_scripts = st.builds(
    Script,
    queued=st.sampled_from((0.0, 0.0, 45.0)),
    starting=st.sampled_from((2.0, 20.0)),
    attempts=st.lists(st.tuples(_ends, st.sampled_from((0.5, 10.0, 100.0))), max_size=5).map(tuple),
)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    scripts=st.lists(_scripts, min_size=1, max_size=2),
    seed=st.integers(0, 2**32),
    faults=st.sampled_from((0, 3, 10)),
    crashes=st.sampled_from((0, 1, 3)),
    ends=st.lists(st.sampled_from(tuple(EndCause)), max_size=3).map(tuple),
    run_budget=st.sampled_from((1e6, 1e6, 60.0)),
    deletions=st.sampled_from((0, 0, 2)),
)
def test_a_step_is_trained_once_and_ends_as_it_did(
    scripts: list[Script],
    seed: int,
    faults: int,
    crashes: int,
    ends: tuple[EndCause, ...],
    run_budget: float,
    deletions: int,
) -> None:
    # Given a world that loses answers, kills launchers and asks them to end, until it has had enough
    world = World(plan(budgets={"run": run_budget}), scripts, Random(seed), faults, crashes, ends, deletions)

    # When the engine starts launchers until one ends for good
    outcome = world.run()

    # Then one JobSet a generation was made (the world itself asserts it), none is left that should not be
    tale = world.tale(f"{outcome.verdict} {outcome.reason}")
    alive = world.alive()
    assert len(alive) <= 1, tale
    if outcome.verdict in DELETED and not outcome.leaked and not world.zombies:
        assert not alive, tale
    record = world.memory.record
    assert record is None or all(made.uid == record.uid for made in alive) or outcome.leaked, tale
    # and the verdict is what happened to that generation
    script = scripts[min(outcome.generation, len(scripts)) - 1]
    if outcome.verdict in (Verdict.SUCCEEDED, Verdict.FAILED):
        verdict, retryable, restarts = script.verdict(2)
        assert outcome.verdict is verdict, tale
        assert outcome.restarts.total == restarts, tale
        assert outcome.retryable is retryable, tale
    elif outcome.verdict is Verdict.RUN_TIMEOUT:
        assert run_budget < 1e6, tale
        assert script.ran >= run_budget / 2, tale
    elif outcome.verdict is Verdict.DELETED_EXTERNALLY and world.meddled:
        # A launcher that was thought dead and only just begins is taken for a person's retry, which trains again.
        assert not alive or world.zombies, tale
    elif outcome.verdict is not Verdict.UNKNOWN:
        assert world.cancelled or (world.zombies and run_budget < 1e6), tale
    # and the API was asked no more than what happened explains
    attempts = sum(len(script.attempts) + 2 for script in scripts)
    launchers = len(world.launchers)
    assert world.memory.saves <= 8 * launchers + 4 * attempts + 3 * world.disturbed, tale
    assert world.reads <= 12 * launchers + 8 * attempts + 8 * world.disturbed + world.now / 600, tale
