"""`python -m tests.conformance --scenarios 300`: the laptop and the real cluster must tell the same of every scenario.

The last line is "300 scenarios, N disagreements". Needs $KUBECONFIG of a cluster with JobSet and the image of the test cluster.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import uuid
from pathlib import Path

import yaml

from jobset_steps.clusters.kubernetes import KubernetesCluster
from jobset_steps.clusters.kubernetes.client import Client
from jobset_steps.clusters.local import LocalCluster
from jobset_steps.errors import ApiError
from tests.conformance.play import IMAGE, Played, differences, play
from tests.conformance.scenarios import Scenario, manifest, scenarios


def compare(
    chosen: list[Scenario], kubeconfig: str | None, namespace: str, *, parallel: int, quiet: bool = False
) -> tuple[list[tuple[Scenario, Played, Played]], int]:
    """(the scenarios that disagree with what came of them here and there, how many were played again)."""

    def told(where: str, count: int) -> None:
        if not quiet and (count % 10 == 0 or count == len(chosen)):
            print(f"  {where}: {count}/{len(chosen)}", flush=True)

    run = f"c-{uuid.uuid4().hex[:6]}"
    with tempfile.TemporaryDirectory() as home, LocalCluster(home, notice=lambda _: None) as local:

        def suspend_here(uid: str, suspended: bool) -> None:
            local.suspend(uid, suspended=suspended)

        here = play(
            local,
            chosen,
            run=run,
            parallel=40,
            suspend=suspend_here,
            told=lambda count: told("local", count),
        )
    real = KubernetesCluster(kubeconfig=kubeconfig, namespace=namespace)
    client = Client(kubeconfig)
    path = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{namespace}/jobsets"

    def suspend_there(uid: str, suspended: bool) -> None:
        for _ in range(10):  # its controller writes to it too
            found = [i for i in client.call("GET", path)["items"] if i["metadata"]["uid"] == uid]
            try:
                for item in found:
                    item["spec"]["suspend"] = suspended
                    client.call("PUT", f"{path}/{item['metadata']['name']}", body=item)
                return
            except ApiError as error:
                if error.kind != "conflict":
                    raise

    def played_there(some: list[Scenario], run: str, parallel: int) -> list[Played]:
        return play(
            real,
            some,
            run=run,
            parallel=parallel,
            namespace=namespace,
            suspend=suspend_there,
            told=lambda count: told("real", count) if len(some) > 1 else None,
        )

    there = played_there(chosen, run, parallel)
    again = 0
    wrong = []
    for scenario, one, other in zip(chosen, here, there, strict=True):
        tries = 0
        while differences(one, other) and other.raced(scenario) and tries < 3:
            tries += 1
            again += 1
            (other,) = played_there([scenario], f"{run}-{tries}", 1)
        if differences(one, other):
            wrong.append((scenario, one, other))
    real.close()
    return wrong, again


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--scenarios", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="leave out this many")
    parser.add_argument("--parallel", type=int, default=8, help="at once on the real cluster")
    parser.add_argument("--kubeconfig")
    parser.add_argument("--out", type=Path, default=Path("out/conformance"))
    options = parser.parse_args()
    began = time.monotonic()
    chosen = scenarios(options.first + options.scenarios)[options.first :]
    client = Client(options.kubeconfig)
    namespace = f"conformance-{uuid.uuid4().hex[:6]}"
    client.call("POST", "/api/v1/namespaces", body={"metadata": {"name": namespace}})
    try:
        wrong, again = compare(chosen, options.kubeconfig, namespace, parallel=options.parallel)
    finally:
        client.call("DELETE", f"/api/v1/namespaces/{namespace}")
    for scenario, one, other in wrong:
        options.out.mkdir(parents=True, exist_ok=True)
        path = options.out / f"{scenario.name}.yaml"
        path.write_text(yaml.safe_dump(manifest(scenario, IMAGE), sort_keys=False))
        print(
            f"{scenario.name} ({path}): {'raced' if other.raced(scenario) else 'did not race'} on the real cluster"
        )
        for key, (left, right) in differences(one, other).items():
            print(f"  {key}: local {json.dumps(left)}, real {json.dumps(right)}")
        for where, played in (("local", one), ("real", other)):
            if played.outcome is not None and played.outcome.reason == "InternalError":
                print(f"  {where}: {played.outcome.message}")
    print(
        f"took {time.monotonic() - began:.0f} s; {again} played again because the machine was too busy for their ends to stay apart"
    )
    print(f"{len(chosen):,} scenarios, {len(wrong)} disagreements")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
