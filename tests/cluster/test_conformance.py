"""The laptop tells the truth: thirty random scenarios with fixed seeds, here and on the real cluster."""

from __future__ import annotations

from tests.cluster.conftest import Place
from tests.conformance.__main__ import compare
from tests.conformance.play import differences
from tests.conformance.scenarios import scenarios


def test_the_laptop_and_the_real_cluster_tell_the_same(place: Place, kubeconfig: str) -> None:
    wrong, _ = compare(scenarios(30), kubeconfig, place.name, parallel=8, quiet=True)
    assert [(scenario.name, differences(one, other)) for scenario, one, other in wrong] == []
