"""Retrains every night in an Argo CronWorkflow, written with Hera: prepare, train once a night, branch on the verdict.

    python pipelines/nightly_retrain.py > nightly.yaml    # the CronWorkflow, for `argo cron create` or `kubectl apply`

The training belongs to the night it is due (its slot), not to the Workflow that happens to run it: a Workflow of the same
night that is submitted again finds the training under way or its outcome, and trains nothing twice.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hera.workflows import DAG, Container, CronWorkflow, Parameter, Task
from hera.workflows import models as m

from jobset_steps import Budgets, FailurePolicy, xgboost
from jobset_steps.argo.hera import JobSetStep

SCRIPT = Path(__file__).resolve().parent / "retrain_xgboost_train.py"  # where the image has it, too
IMAGE = "registry.example/retrain:1"  # XGBoost, scikit-learn, and this project for the launcher and its worker functions
CLAIM = "nightly"
"""A PersistentVolumeClaim of the namespace that all pods can write to at once."""
SHARED = "/shared"
SLOT = "{{workflow.scheduledTime}}"
"""When the Workflow was due, which Argo knows of every Workflow that a CronWorkflow makes."""
PREPARE = """
import sys, numpy
from sklearn.datasets import load_digits
features, labels = load_digits(return_X_y=True)
numpy.savez(sys.argv[1], features=features, labels=labels)
"""


def nightly(
    *,
    image: str = IMAGE,
    launcher: str = "",
    claim: str = CLAIM,
    schedule: str = "30 2 * * *",
    timezone: str = "Europe/Berlin",
    rounds: int = 20,
) -> CronWorkflow:
    """The CronWorkflow. `launcher` is the image that the launcher runs in, the package's own by default."""
    work = m.Volume(
        name="work", persistent_volume_claim=m.PersistentVolumeClaimVolumeSource(claim_name=claim)
    )
    with CronWorkflow(
        name="nightly-retrain",
        schedules=[schedule],
        timezone=timezone,
        # A night whose predecessor still trains is left out: the two would share a GPU and a model.
        concurrency_policy="Forbid",
        # A controller that was away at half past two begins the night's training up to an hour late.
        starting_deadline_seconds=3600,
        entrypoint="main",
        volumes=[work],
    ) as workflow:
        prepare = Container(
            name="prepare",
            image=image,
            image_pull_policy="IfNotPresent",
            command=["python", "-c", PREPARE, f"{SHARED}/data.npz"],
            volume_mounts=[m.VolumeMount(name="work", mount_path=SHARED)],
        )
        tell = Container(
            name="tell",
            image=image,
            image_pull_policy="IfNotPresent",
            inputs=[Parameter(name="words")],
            env=[m.EnvVar(name="WORDS", value="{{inputs.parameters.words}}")],
            command=["python", "-c", "import os; print(os.environ['WORDS'])"],
        )
        spec = xgboost(
            "train",
            script=SCRIPT,
            image=image,
            workers=1,
            args=["--data", f"{SHARED}/data.npz", "--rounds", rounds],
            volumes={SHARED: f"pvc://{claim}"},
            checkpoints=f"pvc://{claim}/checkpoints",
            failure_policy=FailurePolicy.resilient(max_restarts=3),
        )
        with DAG(name="main"):
            data = Task(name="prepare", template=prepare)
            train = JobSetStep(
                "train",
                spec,
                on_failure="branch",
                slot=SLOT,
                budgets=Budgets(queue="4h", run="3h"),
                **({"image": launcher} if launcher else {}),
            )
            promote = Task(
                name="promote",
                template=tell,
                when=f"{train.verdict} == Succeeded",
                arguments={"words": f"a new model after {train.restarts} restart(s): {train.metrics}"},
            )
            report = Task(
                name="report",
                template=tell,
                when=f"{train.verdict} != Succeeded",
                arguments={"words": f"no new model tonight: {train.outcome}"},
            )
            data >> train >> [promote, report]
    return workflow


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--image", default=IMAGE)
    parser.add_argument("--launcher", default="", help="the launcher's image; default: the package's own")
    parser.add_argument("--claim", default=CLAIM)
    options = parser.parse_args()
    sys.stdout.write(nightly(image=options.image, launcher=options.launcher, claim=options.claim).to_yaml())
    return 0


if __name__ == "__main__":
    sys.exit(main())
