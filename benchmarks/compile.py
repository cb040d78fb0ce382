"""What compiling 1,000 steps costs beside the same workflow written in bare Hera, as a ratio of medians.

    python benchmarks/compile.py

The bare workflow has the same tasks and the same templates, made with Hera's own classes out of text that is ready, and
nothing of it is checked. Ours checks and encodes each of 1,000 different specs. Both end as the YAML that is submitted.
The last line is the figure: at most 1.20.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from hera.workflows import DAG, Container, Parameter, RawArtifact, Task, Workflow
from hera.workflows import models as m
from hera.workflows.retry_strategy import RetryStrategy

from jobset_steps import FailurePolicy, torchrun
from jobset_steps.argo import argo_step, template
from jobset_steps.argo.hera import JobSetStep

STEPS, PAIRS = 1000, 3


def spec(number: int) -> Any:
    """A training as people write it, another one each time, with an upstream output in it."""
    return torchrun(
        "train",
        script="/app/train.py",
        image="registry.example/train:1",
        nodes=4,
        args=["--seed", number, "--data", "{{workflow.parameters.data}}"],
        failure_policy=FailurePolicy.resilient(max_restarts=3),
    )


def ours(specs: list[Any]) -> str:
    with (
        Workflow(name="wf", entrypoint="main", arguments={"data": "s3://data"}) as workflow,
        DAG(name="main"),
    ):
        for number, each in enumerate(specs):
            JobSetStep(f"train-{number}", each)
    return str(workflow.to_yaml())


def bare(templates: dict[str, dict[str, object]]) -> str:
    with Workflow(name="wf", entrypoint="main", arguments={"data": "s3://data"}) as workflow:
        made = {name: _container(template) for name, template in templates.items()}
        with DAG(name="main"):
            for name, template in made.items():
                value = "{{=sprig.b64enc(workflow['parameters']['data'])}}"
                Task(name=name, template=template, arguments={"workflow-parameters-data": value})
    return str(workflow.to_yaml())


def _container(template: dict[str, object]) -> Container:
    """One of our templates as a person would write it with Hera, its texts given."""
    given = json.loads(json.dumps(template))
    container, retry = given["container"], given["retryStrategy"]
    artifact, outputs = given["inputs"]["artifacts"][0], given["outputs"]["parameters"]
    return Container(
        name=given["name"],
        image=container["image"],
        command=container["command"],
        env=[m.EnvVar.model_validate(each) for each in container["env"]],
        resources=m.ResourceRequirements.model_validate(container["resources"]),
        security_context=m.SecurityContext.model_validate(container["securityContext"]),
        inputs=[
            *(Parameter(name=each["name"]) for each in given["inputs"]["parameters"]),
            RawArtifact(name=artifact["name"], path=artifact["path"], data=artifact["raw"]["data"]),
        ],
        outputs=[
            Parameter(name=each["name"], value_from=m.ValueFrom.model_validate(each["valueFrom"]))
            for each in outputs
        ],
        retry_strategy=RetryStrategy(
            limit=retry["limit"],
            retry_policy=retry["retryPolicy"],
            expression=retry["expression"],
            backoff=m.Backoff.model_validate(retry["backoff"]),
        ),
        pod_spec_patch=given["podSpecPatch"],
        labels=given["metadata"]["labels"],
        annotations=given["metadata"]["annotations"],
    )


def seconds(make: Callable[[], str]) -> float:
    began = time.perf_counter()
    make()
    return time.perf_counter() - began


def main() -> None:
    specs = [spec(number) for number in range(STEPS)]
    templates = {
        f"train-{number}": template(argo_step(each, name=f"train-{number}"))
        for number, each in enumerate(specs)
    }
    pairs = [(seconds(lambda: ours(specs)), seconds(lambda: bare(templates))) for _ in range(PAIRS)]
    mine, theirs = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
    print(f"{STEPS} steps: jobset_steps {mine:.2f} s, bare Hera {theirs:.2f} s")
    print(f"compile {statistics.median(ours / bare for ours, bare in pairs):.2f}")


if __name__ == "__main__":
    main()
