"""What a thousand waiting steps of the plugin's server cost: memory of the process, and requests to the API server.

    python -m benchmarks.waiting --steps 1000 [--kubeconfig FILE]

Needs a cluster with JobSet and Argo. The JobSets are suspended, so that they cost the cluster no pods; the server's steps
wait for them as for any other. Prints memory after each quarter, as growth should be a straight line, and last the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from jobset_steps.clusters.kubernetes import KubernetesCluster
from jobset_steps.serve.calls import Call
from jobset_steps.serve.steps import Namespace, Steps
from tests.cluster.conftest import ARGO, administrator, new_place
from tests.cluster.steps import jobset, replicated

QUIET = 900.0
"""Seconds over which requests are counted once all steps wait. A step looks often at first and then ever less, so the longer
the truer: the rate of a whole hour is lower than what this says."""


def resident() -> float:
    """Memory of this process, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")


def bare() -> float:
    """Memory of a process that has imported the Kubernetes client and nothing else, in MB."""
    script = "import kubernetes; print(next(l.split()[1] for l in open('/proc/self/status') if l.startswith('VmRSS')))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return int(done.stdout) / 1024


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.waiting", description=__doc__)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--quiet", type=float, default=QUIET, help="seconds over which requests are counted")
    parser.add_argument("--kubeconfig", default=None)
    options = parser.parse_args()
    kubeconfig = options.kubeconfig or os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    spec = jobset(replicated("workers", "true"), suspend=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        new_place(administrator(kubeconfig), kubeconfig, Path(folder)) as place,
    ):
        template = {"name": "main", "suspend": {}}
        body = {**ARGO, "metadata": {"name": "wf"}, "spec": {"entrypoint": "main", "templates": [template]}}
        uid = place.create("workflows", body)["metadata"]["uid"]
        cluster = KubernetesCluster(kubeconfig=kubeconfig, namespace=place.name)
        steps = Steps(lambda _: Namespace(cluster, cluster))
        asked = [
            Call(place.name, "wf", uid, f"wf.step-{number}", {"spec": json.dumps(spec)})
            for number in range(options.steps)
        ]
        print(f"empty: {resident():.0f} MB", flush=True)
        for quarter in range(1, 5):
            some = asked[: options.steps * quarter // 4]
            while True:
                waiting = [steps.answer(call)["node"]["message"] for call in some]
                if all(message.startswith("Queued") for message in waiting):
                    break
                time.sleep(2)
            print(f"{len(some)} steps wait: {resident():.0f} MB", flush=True)
        before = cluster.requests
        time.sleep(options.quiet)
        hourly = (cluster.requests - before) * 3600 / options.quiet
        memory, kubernetes = resident(), bare()
        steps.stop(0)
    print(f"{hourly:.0f} requests an hour, {hourly / options.steps:.1f} a step (at most 20)")
    print(
        f"{options.steps:,} waiting steps: {memory:.0f} MB, {memory / kubernetes:.1f} x a bare import kubernetes"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
