"""The brain of a step: `step(state, input, now) -> (state, actions)`. Pure: no clock, no sleep, no random, no I/O.

A runner makes a state with `start(plan)`, feeds a Tick first, carries out actions and feeds their answers until Finish.
"""

from __future__ import annotations

from jobset_steps.supervisor.state import Phase, StepState, start
from jobset_steps.supervisor.step import step

__all__ = ["Phase", "StepState", "start", "step"]
