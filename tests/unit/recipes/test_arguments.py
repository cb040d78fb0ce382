"""Arguments of the wrong kind: each is a fault that names it, all at once, and never a TypeError."""

from __future__ import annotations

from typing import Any

import pytest

from jobset_steps import InvalidSpec, ddp, jax, mpi, torchrun, xgboost

WRONG: dict[str, Any] = {
    "args": "--data /data",
    "env": [{"name": "A", "value": "b"}],
    "resources": "8 gpus",
    "volumes": ["/data"],
    "pod": "x",
    "fatal_exit_codes": [0, 300, "2", True],
    "failure_policy": {"maxRestarts": 3},
    "volume_claim_policies": [1],
}


@pytest.mark.parametrize(
    ("recipe", "count"),
    [
        (torchrun, {"nodes": 2}),
        (ddp, {"nodes": 2}),
        (jax, {"nodes": 2}),
        (mpi, {"workers": 2}),
        (xgboost, {"workers": 2}),
    ],
    ids=["torchrun", "ddp", "jax", "mpi", "xgboost"],
)
def test_every_wrong_argument_is_named_at_once(recipe: Any, count: dict[str, int]) -> None:
    with pytest.raises(InvalidSpec) as caught:
        recipe("train", image="i", script="t.py", **count, **WRONG)
    assert [fault.path for fault in caught.value.faults] == list(WRONG)


@pytest.mark.parametrize("count", [None, 0, -1, True, 2.0, "2", "two", [2]])
def test_a_count_is_a_whole_number_from_1_on(count: Any) -> None:
    for call in (
        lambda: torchrun("train", image="i", script="t.py", nodes=count),
        lambda: torchrun("train", image="i", script="t.py", nproc_per_node=count),
        lambda: ddp("train", image="i", script="t.py", nodes=count),
        lambda: ddp("train", image="i", script="t.py", nproc_per_node=count),
        lambda: xgboost("train", image="i", script="t.py", workers=count),
    ):
        with pytest.raises(InvalidSpec, match=r"nodes: |nproc_per_node: |workers: "):
            call()


def test_torchruns_own_words_and_an_engines_placeholders_pass() -> None:
    torchrun("train", image="i", script="t.py", nproc_per_node="gpu")
    torchrun("train", image="i", script="t.py", nodes="{{inputs.parameters.n}}", args=None)
