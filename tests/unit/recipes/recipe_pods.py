"""The pods that the controllers make of a JobSet, and the environment that each of them has."""

from typing import Any

from jobset_steps.clusters.local.environment import container_env, downward, expand
from jobset_steps.semantics.admission import with_api_defaults
from jobset_steps.semantics.children import ChildManifests
from jobset_steps.spec.jobset import JobSet
from jobset_steps.spec.naming import instantiate
from jobset_steps.worker import Context, context

MARKS = {
    "jobset-steps/run": "run 1",
    "jobset-steps/step": "train",
    "jobset-steps/checkpoint-key": "run-1/train",
    "jobset-steps/model-uri": "s3://models/m",
}


def container(jobset: JobSet, number: int = 0) -> dict[str, Any]:
    return jobset.spec.replicated_jobs[number].template.spec.template["spec"]["containers"][0]


def words(jobset: JobSet, number: int = 0) -> list[str]:
    """The command line under the entry."""
    return container(jobset, number)["args"]


def environments(jobset: JobSet, *, name: str = "train-1a2b3c4d", attempt: int = 0) -> list[dict[str, str]]:
    """The environment of each pod, as the step's JobSet has it under its final name, in the order of replicated jobs."""
    manifest = instantiate(jobset, name=name, namespace="ml", labels={}, annotations=MARKS)
    made = with_api_defaults(JobSet.from_dict(manifest))
    children = ChildManifests(made, name=name, uid="u", namespace="ml")
    found = []
    for replicated in made.spec.replicated_jobs:
        for job in range(replicated.replicas or 1):
            for index in range(replicated.template.spec.completions or 1):
                pod = children.pod(
                    replicated, job, attempt, job_uid="j", completion_index=index, name="p", uid="q"
                )
                [only] = pod["spec"]["containers"]
                found.append(
                    container_env(
                        only,
                        {},
                        field=downward(pod, address="10.0.0.1", node="n"),
                        capacity={},
                        external=lambda variable: f"<{variable}>",
                    )
                    | {"args": "\n".join(only["args"])}
                )
    return [env | {"args": expand(env["args"], env)} for env in found]


def contexts(jobset: JobSet, **how: Any) -> list[Context]:
    return [context(env) for env in environments(jobset, **how)]
