"""Random JobSets with scripted ends, the same on every cluster: what each pod does is written in its own command.

A pod reads attempt, job index and pod index from its environment, waits and exits as its script says. Within an attempt
pods end at least `SPACING` seconds apart, so that no two ends race in the controllers; what is scripted to run "for ever"
runs longer than any scenario.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

__all__ = ["FOREVER", "SPACING", "End", "Scenario", "manifest", "scenario_strategy", "scenarios"]

SPACING = 3
FOREVER = 600
_EXITS = (1, 2, 17, 64, 143)


@dataclass(frozen=True)
class End:
    """How one pod ends in one attempt: after so many seconds, with this exit code."""

    replicated_job: str
    job: int
    pod: int
    attempt: int
    seconds: int
    exit_code: int


@dataclass(frozen=True)
class Scenario:
    """A JobSet without its commands, and how its pods end. Pods that `ends` leaves out run for ever."""

    name: str
    jobset: dict[str, Any]
    ends: tuple[End, ...]


def manifest(scenario: Scenario, image: str) -> dict[str, Any]:
    """The JobSet with the script in every pod's command."""
    jobset = {**scenario.jobset, "spec": dict(scenario.jobset["spec"])}
    jobset["spec"]["replicatedJobs"] = [
        {
            **replicated,
            "template": {
                "spec": {**replicated["template"]["spec"], "template": _pod(scenario, replicated, image)}
            },
        }
        for replicated in scenario.jobset["spec"]["replicatedJobs"]
    ]
    return jobset


def _pod(scenario: Scenario, replicated: dict[str, Any], image: str) -> dict[str, Any]:
    cases = [
        f"{end.attempt}.{end.job}.{end.pod}) sleep {end.seconds}; exit {end.exit_code};;"
        for end in scenario.ends
        if end.replicated_job == replicated["name"]
    ]
    script = (
        'case "$ATTEMPT.$JOB.$JOB_COMPLETION_INDEX" in ' + " ".join(cases) + f" *) sleep {FOREVER};; esac"
    )

    def field(name: str, key: str) -> dict[str, Any]:
        path = f"metadata.annotations['jobset.sigs.k8s.io/{key}']"
        return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}

    return {
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": "main",
                    "image": image,
                    "imagePullPolicy": "Never",
                    "command": ["sh", "-c", script],
                    "env": [field("ATTEMPT", "restart-attempt"), field("JOB", "job-index")],
                }
            ],
        }
    }


@st.composite
def _scenario(draw: st.DrawFn) -> Scenario:
    names = draw(st.sampled_from([("leader", "workers"), ("workers",), ("a", "b", "c")]))
    shapes = {name: (draw(st.integers(1, 2)), draw(st.integers(1, 2))) for name in names}
    jobs = [_replicated(draw, name, *shapes[name]) for name in names]
    spec: dict[str, Any] = {"replicatedJobs": jobs}
    order = draw(st.sampled_from(["any", "any", "in order", "depends"])) if len(names) > 1 else "any"
    if order == "in order":
        spec["startupPolicy"] = {"startupPolicyOrder": "InOrder"}
    if order == "depends":
        for earlier, job in zip(names, jobs[1:], strict=False):
            if draw(st.booleans()):
                job["dependsOn"] = [{"name": earlier, "status": draw(st.sampled_from(["Ready", "Complete"]))}]
    if (policy := draw(_failure_policy(names))) is not None:
        spec["failurePolicy"] = policy
    if draw(st.booleans()):
        targets = draw(st.lists(st.sampled_from(names), unique=True, max_size=len(names)))
        spec["successPolicy"] = {"operator": draw(st.sampled_from(["All", "Any"]))} | (
            {"targetReplicatedJobs": sorted(targets)} if targets else {}
        )
    jobset = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "s"},
        "spec": spec,
    }
    return Scenario("s", jobset, tuple(_ends(draw, names, shapes)))


def _replicated(draw: st.DrawFn, name: str, replicas: int, pods: int) -> dict[str, Any]:
    job: dict[str, Any] = {"parallelism": pods, "completions": pods, "completionMode": "Indexed"}
    job["backoffLimit"] = draw(st.sampled_from([0, 0, 0, 1]))
    kind = draw(st.sampled_from(["plain", "plain", "exit code", "per index", "success policy"]))
    if kind == "exit code":
        rule = {"onExitCodes": {"operator": "In", "values": [17, 64]}}
        job["podFailurePolicy"] = {
            "rules": [{"action": draw(st.sampled_from(["FailJob", "Ignore", "Count"])), **rule}]
        }
        if job["podFailurePolicy"]["rules"][0]["action"] == "Ignore":
            job["podFailurePolicy"]["rules"][0]["onExitCodes"]["values"] = [64]
    if kind == "per index":
        del job["backoffLimit"]
        job["backoffLimitPerIndex"] = 0
    if kind == "success policy":
        job["successPolicy"] = {"rules": [{"succeededIndexes": "0"}]}
    return {"name": name, "replicas": replicas, "template": {"spec": job}}


@st.composite
def _failure_policy(draw: st.DrawFn, names: tuple[str, ...]) -> dict[str, Any] | None:
    if not draw(st.sampled_from([True, True, True, False])):
        return None
    policy: dict[str, Any] = {"maxRestarts": draw(st.integers(0, 2))}
    policy["restartStrategy"] = draw(st.sampled_from(["Recreate", "BlockingRecreate"]))
    rules = []
    for number in range(draw(st.integers(0, 2))):
        rule: dict[str, Any] = {"name": f"rule{number}"}
        rule["action"] = draw(
            st.sampled_from(
                ["FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts", "RestartJobSet"]
            )
        )
        if draw(st.booleans()):
            rule["targetReplicatedJobs"] = [draw(st.sampled_from(names))]
        if draw(st.booleans()):
            reasons = ["BackoffLimitExceeded", "PodFailurePolicy", "FailedIndexes"]
            rule["onJobFailureReasons"] = sorted(draw(st.sets(st.sampled_from(reasons), min_size=1)))
        if draw(st.sampled_from([False, False, True])):
            rule["onJobFailureMessagePatterns"] = [
                draw(st.sampled_from(["exit code 17", "backoff limit", "^Job"]))
            ]
        rules.append(rule)
    if rules:
        policy["rules"] = rules
    return policy


def _ends(draw: st.DrawFn, names: tuple[str, ...], shapes: dict[str, tuple[int, int]]) -> list[End]:
    """Per attempt an order of ends. The fourth attempt and later ones always succeed, so that every scenario ends."""
    places = [
        (name, job, pod) for name in names for job in range(shapes[name][0]) for pod in range(shapes[name][1])
    ]
    ends = []
    for attempt in range(6):
        order = draw(st.permutations(places))
        fails = (
            draw(st.integers(0, len(order) - 1))
            if attempt < 3 and draw(st.sampled_from([True, True, False]))
            else None
        )
        for turn, (name, job, pod) in enumerate(order, start=1):
            code = draw(st.sampled_from(_EXITS)) if turn - 1 == fails else 0
            # The first end leaves time for all pods to have been ready together, which start-up order waits for.
            ends.append(End(name, job, pod, attempt, (turn + 1) * SPACING, code))
    return ends


def scenario_strategy() -> st.SearchStrategy[Scenario]:
    """Any scenario."""
    return _scenario()


def scenarios(count: int) -> list[Scenario]:
    """`count` scenarios, the same in every run."""
    drawn: list[Scenario] = []

    @settings(
        max_examples=count * 3,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(_scenario())
    def collect(scenario: Scenario) -> None:
        if len(drawn) < count:
            name = f"s{len(drawn)}"
            drawn.append(Scenario(name, {**scenario.jobset, "metadata": {"name": name}}, scenario.ends))

    collect()
    return drawn
