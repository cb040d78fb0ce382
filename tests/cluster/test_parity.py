"""What we accept the real API server accepts, down to the pods, and what we refuse for good it refuses."""

from __future__ import annotations

import pytest

from jobset_steps.clusters.kubernetes.client import Client
from tests.parity.rounds import disagreements


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_a_hundred_specs_near_every_edge_are_judged_as_the_server_judges_them(
    kubeconfig: str, seed: int
) -> None:
    found = disagreements(Client(kubeconfig), 100, seed)
    assert not found, "\n".join(found)
