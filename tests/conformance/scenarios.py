"""Random JobSets with scripted ends, the same on every cluster: what each pod does is written in its own command.

A pod reads attempt, job index and pod index from its environment, waits and exits as its script says. Within an attempt
pods end at least `SPACING` seconds apart, so that no two ends race in the controllers, and twice as far where some pods
start after others; what is scripted to run "for ever" runs longer than any scenario. A suspension is told by moments that are
the same everywhere: it begins or ends some seconds after the JobSet was made, or after a pod of it has ended well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

__all__ = [
    "DEADLINE",
    "FOREVER",
    "SPACING",
    "End",
    "Scenario",
    "Suspension",
    "manifest",
    "scenario_strategy",
    "scenarios",
]

SPACING = 3
FOREVER = 600
DEADLINE = 3
"""activeDeadlineSeconds of a child Job that is to run into it: less than the time to the first end of any pod."""
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


class Suspension(StrEnum):
    """When somebody suspends the JobSet; it is resumed `SPACING` seconds later."""

    NEVER = "never"
    FROM_THE_START = "from the start"
    BEFORE_AN_END = "before an end"
    AFTER_AN_END = "after an end"


@dataclass(frozen=True)
class Scenario:
    """A JobSet without its commands, and how its pods end. Pods that `ends` leaves out run for ever."""

    name: str
    jobset: dict[str, Any]
    ends: tuple[End, ...]
    suspension: Suspension = Suspension.NEVER

    @property
    def ordered(self) -> bool:
        """Whether pods of one replicated job start after those of another."""
        spec = self.jobset["spec"]
        return "startupPolicy" in spec or any("dependsOn" in job for job in spec["replicatedJobs"])


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
    deadlines = _deadlines(draw, jobs) if order == "any" else False
    if order == "in order":
        spec["startupPolicy"] = {"startupPolicyOrder": "InOrder"}
    if order == "depends":
        for earlier, job in zip(names, jobs[1:], strict=False):
            if draw(st.booleans()):
                job["dependsOn"] = [{"name": earlier, "status": draw(st.sampled_from(["Ready", "Complete"]))}]
    if (policy := draw(_failure_policy(names, bounded=deadlines))) is not None:
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
    suspension = draw(
        st.sampled_from([*Suspension, Suspension.NEVER, Suspension.FROM_THE_START, Suspension.NEVER])
    )
    if suspension is Suspension.FROM_THE_START:
        spec["suspend"] = True
    return Scenario("s", jobset, tuple(_ends(draw, names, shapes, ordered=order != "any")), suspension)


def _deadlines(draw: st.DrawFn, jobs: list[dict[str, Any]]) -> bool:
    """Give some Jobs a deadline: one that is never reached, or one that always is. Whether there is one of these."""
    kind = draw(st.sampled_from(["none", "none", "none", "far", "near"]))
    if kind != "none":
        deadline = {"far": FOREVER // 2, "near": DEADLINE}[kind]
        job = draw(st.sampled_from(jobs))
        job["template"]["spec"]["activeDeadlineSeconds"] = deadline
        if kind == "near":
            job["replicas"] = 1  # two Jobs of one deadline race
    return kind == "near"


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
def _failure_policy(draw: st.DrawFn, names: tuple[str, ...], *, bounded: bool) -> dict[str, Any] | None:
    """A failure policy or none. `bounded`: without restarts that are free, as something fails in every attempt."""
    if not draw(st.sampled_from([True, True, True, False])):
        return None
    policy: dict[str, Any] = {"maxRestarts": draw(st.integers(0, 2))}
    policy["restartStrategy"] = draw(st.sampled_from(["Recreate", "BlockingRecreate"]))
    rules = []
    for number in range(draw(st.integers(0, 2))):
        rule: dict[str, Any] = {"name": f"rule{number}"}
        free = () if bounded else ("RestartJobSetAndIgnoreMaxRestarts",)
        rule["action"] = draw(st.sampled_from(["FailJobSet", "RestartJobSet", "RestartJobSet", *free]))
        if draw(st.booleans()):
            rule["targetReplicatedJobs"] = [draw(st.sampled_from(names))]
        if draw(st.booleans()):
            reasons = ["BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "PodFailurePolicy"]
            rule["onJobFailureReasons"] = sorted(draw(st.sets(st.sampled_from(reasons), min_size=1)))
        if draw(st.sampled_from([False, False, True])):
            rule["onJobFailureMessagePatterns"] = [
                draw(st.sampled_from(["exit code 17", "backoff limit", "^Job"]))
            ]
        rules.append(rule)
    if rules:
        policy["rules"] = rules
    return policy


def _ends(
    draw: st.DrawFn, names: tuple[str, ...], shapes: dict[str, tuple[int, int]], *, ordered: bool
) -> list[End]:
    """Per attempt an order of ends. The fourth attempt and later ones always succeed, so that every scenario ends.

    Where start is `ordered`, pods of one replicated job start some seconds after those of another, and a replicated job counts
    as ready only in the seconds in which all its pods are up: all ends come later, and farther apart.
    """
    spacing, first = (2 * SPACING, 4 * SPACING) if ordered else (SPACING, 2 * SPACING)
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
        seconds = first
        for turn, (name, job, pod) in enumerate(order):
            code = draw(st.sampled_from(_EXITS)) if turn == fails else 0
            ends.append(End(name, job, pod, attempt, seconds, code))
            # A Job that fails tears its other pods down before it says so.
            seconds += spacing if code == 0 else spacing + 2 * SPACING
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
            drawn.append(replace(scenario, name=name, jobset={**scenario.jobset, "metadata": {"name": name}}))

    collect()
    return drawn
