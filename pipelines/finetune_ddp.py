"""Trains a small language model in an Argo workflow, written with Hera: train on two nodes, evaluate, branch.

    python pipelines/finetune_ddp.py > finetune.yaml    # the Workflow, for `argo submit` or `kubectl create`

Two nodes of two processes each train under PyTorch's DistributedDataParallel. One process crashes once: the set is restarted
as a whole, resumes from its checkpoint and finishes. What comes then depends on how the training ended and on how well the
model does; a failed training is a branch of the workflow like any other.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hera.workflows import DAG, Container, Parameter, Task, Workflow
from hera.workflows import models as m

from jobset_steps import Budgets, FailurePolicy, torchrun
from jobset_steps.argo.hera import JobSetStep

SCRIPT = Path(__file__).resolve().parent / "finetune_ddp_train.py"  # where the image has it, too
IMAGE = "registry.example/finetune:1"  # PyTorch, and this project for the launcher and its worker functions
CLAIM = "finetune"
"""A PersistentVolumeClaim of the namespace that all pods can write to at once."""
SHARED = "/shared"


def finetune(
    *, image: str = IMAGE, launcher: str = "", claim: str = CLAIM, steps: int = 60, crash_at_step: int = 25
) -> Workflow:
    """The Workflow. `launcher` is the image that the launcher runs in, the package's own by default."""
    model = f"{SHARED}/models/{{{{workflow.name}}}}.pt"
    mounted = {"volumes": [m.Volume(name="work", persistent_volume_claim=_claim(claim))]}
    with Workflow(
        generate_name="finetune-", entrypoint="main", arguments={"steps": steps}, **mounted
    ) as workflow:
        evaluate = Container(
            name="evaluate",
            image=image,
            image_pull_policy="IfNotPresent",
            command=["python", str(SCRIPT), "--model", model, "--evaluate", "/tmp/evaluation.json"],
            volume_mounts=[m.VolumeMount(name="work", mount_path=SHARED)],
            outputs=[Parameter(name="evaluation", value_from={"path": "/tmp/evaluation.json"})],
        )
        tell = Container(
            name="tell",
            image=image,
            image_pull_policy="IfNotPresent",
            inputs=[Parameter(name="words")],
            env=[m.EnvVar(name="WORDS", value="{{inputs.parameters.words}}")],
            command=["python", "-c", "import os; print(os.environ['WORDS'])"],
        )
        spec = torchrun(
            "train",
            script=SCRIPT,
            image=image,
            nodes=2,
            nproc_per_node=2,
            args=[
                *("--model", model),
                *("--steps", workflow.get_parameter("steps")),
                *("--crash-rank", 3, "--crash-at-step", crash_at_step),
            ],
            volumes={SHARED: f"pvc://{claim}"},
            checkpoints=f"pvc://{claim}/checkpoints",
            failure_policy=FailurePolicy.resilient(max_restarts=2),
        )
        with DAG(name="main"):
            train = JobSetStep(
                "train",
                spec,
                on_failure="branch",
                budgets=Budgets(queue="12h", run="2h"),
                **({"image": launcher} if launcher else {}),
            )
            trained, failed = f"{train.verdict} == Succeeded", f"{train.verdict} != Succeeded"
            judge = Task(name="evaluate", template=evaluate, when=trained)
            perplexity = "asFloat(jsonpath(tasks.evaluate.outputs.parameters.evaluation, '$.perplexity'))"
            Task(
                name="promote",
                template=tell,
                depends="evaluate.Succeeded",  # what was skipped has no perplexity
                when=f"{{{{={perplexity} < 20}}}} == true",
                arguments={
                    "words": f"promoted after {train.restarts} restart(s): {judge.get_parameter('evaluation')}"
                },
            )
            report = Task(
                name="report",
                template=tell,
                when=failed,
                arguments={"words": f"no new model: {train.outcome}"},
            )
            train >> [judge, report]
    return workflow


def _claim(name: str) -> m.PersistentVolumeClaimVolumeSource:
    return m.PersistentVolumeClaimVolumeSource(claim_name=name)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--image", default=IMAGE)
    parser.add_argument("--launcher", default="", help="the launcher's image; default: the package's own")
    parser.add_argument("--claim", default=CLAIM)
    options = parser.parse_args()
    sys.stdout.write(finetune(image=options.image, launcher=options.launcher, claim=options.claim).to_yaml())
    return 0


if __name__ == "__main__":
    sys.exit(main())
