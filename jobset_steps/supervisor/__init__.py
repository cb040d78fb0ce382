"""The brain of a step: `step(state, input, now) -> (state, actions)`. Pure: no clock, no sleep, no random, no I/O."""
