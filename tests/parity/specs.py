"""JobSets near every boundary: a sound one, of any shape, and then up to six places of it moved to an edge or over it.

What was moved is kept beside the tree, so that a disagreement is read at once.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.parity.edges import NUMBERS, WRONG, key, label, labels, mostly, some
from tests.parity.pods import CLAIM, CONTAINER, POD, VOLUME_SOURCES, Strategy, numbers, one_of, several

__all__ = ["Spec", "specs"]

Draw = Callable[[Strategy], Any]


@dataclass(frozen=True)
class Spec:
    """A JobSet as plain data, and what was moved in it."""

    tree: dict[str, Any]
    moves: tuple[str, ...]


TARGETS = mostly(
    st.lists(st.sampled_from(["workers", "driver", "x"]), max_size=2),
    [None, ["y"], [""], "workers", [1], ["workers", "workers"]],
)
INDEXES = mostly(
    ["0", "0,2-4", ""],
    ["1-1", "2,1", "0,", "-1", "a", "0-", "5", "0-100", "٣", "+1", "00", "0,0", "0-1,1", None, 0, " 0"],
)
CODES = mostly(
    [[1], [1, 2, 137], list(range(1, 256))],
    [[], [0], [2, 1], [1, 1], [256], [-1], list(range(1, 258)), None, "1", [1.5], [2**31]],
)
POD_FAILURE_RULE = mostly(
    st.one_of(
        some(action__=one_of("FailJob", "Ignore", "Count", "FailIndex"), onExitCodes__=some(operator__=one_of("In", "NotIn"), values__=CODES, containerName=mostly(["main"], ["", "x", None, "init"]))),
        some(action__=one_of("FailJob", "Ignore", "Count"), onPodConditions__=several(some(type__=key(), status=one_of("True", "False", "Unknown")))),
    ),
    [{}, {"action": "FailJob"}, {"action": "FailJob", "onExitCodes": None}, {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}, "onPodConditions": [{"type": "A", "status": "True"}]}, {"onExitCodes": {"operator": "In", "values": [1]}}],
)  # fmt: skip
COUNTS = mostly([0, 1, 2, 5, 10000, 10001, 100000], [*NUMBERS, 100001])
JOB: dict[str, Strategy] = {
    "parallelism": COUNTS,
    "completions": COUNTS,
    "completionMode": one_of("Indexed", "NonIndexed"),
    "backoffLimit": numbers(0, 6),
    "backoffLimitPerIndex": numbers(0, 1),
    "maxFailedIndexes": COUNTS,
    "activeDeadlineSeconds": numbers(0, 10),
    "podReplacementPolicy": one_of("Failed", "TerminatingOrFailed"),
    "podFailurePolicy": mostly(some(rules__=several(POD_FAILURE_RULE)), [None, {}, {"rules": None}, {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "A"}]}] * 21}]),
    "successPolicy": mostly(some(rules__=several(some(succeededIndexes=INDEXES, succeededCount=mostly([1, 2], NUMBERS)))), [None, {}, {"rules": [{"succeededCount": 1}] * 21}, {"rules": []}]),
    "suspend": mostly([True, False], [None, "x"]),
    "ttlSecondsAfterFinished": numbers(0, 1000),
    "managedBy": mostly(["example.com/x"], ["kubernetes.io/job-controller", "", "x", "a/b c", "A/b", "x" * 60 + "/abc", None]),
    "manualSelector": mostly([False], [True, None, "x"]),
    "selector": mostly([None], [{}, {"matchLabels": {"a": "b"}}, {"matchLabels": {}}]),
}  # fmt: skip
FAILURE_RULE = some(
    action__=one_of("FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts"),
    name=mostly(["a", "A_1,:x", "x" * 128], ["", "a-b", "1a", "x" * 129, "a:", "a,", "é", "a\n", None, 1]),
    onJobFailureReasons=mostly(
        [["PodFailurePolicy"], ["BackoffLimitExceeded", "DeadlineExceeded"]],
        [[], None, ["x"], ["FailedIndexes", "MaxFailedIndexesExceeded"], [""], "x"],
    ),
    onJobFailureMessagePatterns=mostly([["a.*"]], [["("], [], ["(?=a)"], None, [1], ["\\d{1001}"]]),
    targetReplicatedJobs=TARGETS,
)


def _claim_spec() -> Strategy:
    more = {name: value for name, value in CLAIM.items() if name not in ("accessModes", "resources")}
    return some(accessModes__=CLAIM["accessModes"], resources__=CLAIM["resources"], **more)


CLAIM_POLICY = some(
    templates__=several(
        some(
            metadata__=mostly([{"name": "claim"}, {"name": "claim", "labels": {"a": "b"}}], [{}, None, {"name": "Claim"}, {"name": "data"}, {"name": "claim", "namespace": "x"}, {"name": "claim", "namespace": ""}, {"name": "x" * 60}, {"name": "other"}, {"name": "claim", "labels": {"a b": ""}}, {"name": "claim", "x": 1}, {"name": "claim", "annotations": {"": ""}}]),
            spec__=mostly(_claim_spec(), [{}, None, {"x": 1}]),
            status=mostly([{}], [{"x": 1}, None]),
            kind=mostly(["PersistentVolumeClaim"], ["x", "", 1]),
        )
    ),
    retentionPolicy=mostly([{"whenDeleted": "Delete"}, {"whenDeleted": "Retain"}], [{}, None, {"whenDeleted": "x"}, {"whenDeleted": ""}, {"whenDeleted": None}]),
)  # fmt: skip
SPEC: dict[str, Strategy] = {
    "suspend": mostly([True, False], [None, "x", 1]),
    "managedBy": mostly(["example.com/x", "kueue.x-k8s.io/multikueue"], ["jobset.sigs.k8s.io/jobset-controller", "", "x", "/x", "x/", "a/b/c", "A/b", "a/b c", "x" * 60 + "/abc", None, "a/é", "a/b%20"]),
    "ttlSecondsAfterFinished": mostly([600, 0, 299, 300, 2**31 - 1], NUMBERS),
    "network": mostly(some(enableDNSHostnames=mostly([True, False], [None, "x"]), publishNotReadyAddresses=mostly([True, False], [None, 1]), subdomain=mostly(["a", "a-b", "x" * 63], ["", "1a", "a.b", "A", "x" * 64, None])), [None, {}, {"x": 1}]),
    "successPolicy": mostly(some(operator__=one_of("All", "Any"), targetReplicatedJobs=TARGETS), [None, {}]),
    "failurePolicy": mostly(some(maxRestarts=numbers(0, 3), restartStrategy=one_of("Recreate", "BlockingRecreate", "InPlaceRestart"), rules=several(FAILURE_RULE, 3)), [None, {}]),
    "startupPolicy": mostly(some(startupPolicyOrder__=one_of("AnyOrder", "InOrder")), [None, {}]),
    "coordinator": mostly(some(replicatedJob__=mostly(["workers"], ["driver", "", "y", None]), jobIndex=mostly([0, 1], NUMBERS), podIndex=mostly([0, 1], NUMBERS)), [None, {}]),
    "volumeClaimPolicies": mostly(several(CLAIM_POLICY), [[{}], [{"templates": []}] * 51, [{"templates": [{}] * 51}], None]),
    "x": st.just(1),
}  # fmt: skip
REPLICATED: dict[str, Strategy] = {
    "name": mostly(label(), ["workers", "driver"]),
    "groupName": mostly(["a", "default"], ["", "1a", "A", "x" * 64, "x" * 63, None, 1, "a_b"]),
    "replicas": mostly([0, 1, 2, 10, 11, 100], [*NUMBERS, 101, 1000]),
    "dependsOn": several(
        some(
            name__=st.sampled_from(["workers", "driver", "x", "", "y"]), status__=one_of("Ready", "Complete")
        ),
        6,
    ),
}
META: dict[str, Strategy] = {
    "name": mostly(["a", "a-b"], ["", "A", "1a", "a.b", "a-", "x" * 64, None, 1, "a\n"]),
    "generateName": mostly(["a-", "a"], ["", "A", "1a", "-", "x" * 64, None, "a."]),
    "namespace": mostly(["default"], [None, ""]),
    "labels": labels(),
    "annotations": labels(),
    "finalizers": mostly([["example.com/a"], []], [["a"], [""], ["a b/c"], None, ["foregroundDeletion"], ["example.com/a", "example.com/a"], [1], "x"]),
    "ownerReferences": mostly(
        [[], [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "b"}]],
        [None, [{}], [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}], [{"apiVersion": "v1", "kind": "ConfigMap", "name": "", "uid": "b"}], [{"apiVersion": "", "kind": "ConfigMap", "name": "a", "uid": "b"}], [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "b", "x": 1}], [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "b", "controller": True}] * 2, [{"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "b"}], [{"apiVersion": "a/b/c", "kind": "A", "name": "a", "uid": "b"}], [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "b", "controller": "x"}]],
    ),
    "creationTimestamp": mostly([None], ["2024-01-01T00:00:00Z", "x"]),
    "x": st.just(1),
}  # fmt: skip
TEMPLATE_META: dict[str, Strategy] = {
    "labels": labels(),
    "annotations": labels(),
    "name": mostly(["a"], ["A", None, 1]),
    "namespace": mostly(["a"], ["A", None]),
    "finalizers": META["finalizers"],
    "creationTimestamp": mostly([None], ["x", {}]),
    "x": st.just(1),
}


@st.composite
def specs(draw: Draw) -> Spec:
    """A sound JobSet with nothing to six places moved."""
    tree = draw(_sound())
    moves = []
    for _ in range(draw(st.sampled_from([0, 1, 2, 3, 4, 5, 6]))):
        moves.append(draw(st.sampled_from(_MOVES))(draw, tree))
    return Spec(tree, tuple(moves))


@st.composite
def _sound(draw: Draw) -> dict[str, Any]:
    claims = draw(st.integers(0, 9)) == 0
    names = draw(
        st.sampled_from([["workers"], ["workers"], ["driver", "workers"], ["driver", "workers", "x"]])
    )
    jobs = [draw(_replicated(name, claims=claims and name == "workers")) for name in names]
    if len(jobs) > 1 and draw(st.integers(0, 3)) == 0:
        jobs[1]["dependsOn"] = [{"name": names[0], "status": draw(st.sampled_from(["Ready", "Complete"]))}]
    spec: dict[str, Any] = {"replicatedJobs": jobs}
    if draw(st.integers(0, 2)) == 0:
        spec["failurePolicy"] = {
            "maxRestarts": 3,
            "rules": [{"name": "a", "action": "FailJobSet", "targetReplicatedJobs": ["workers"]}],
        }
    if draw(st.integers(0, 3)) == 0:
        spec["network"] = {"enableDNSHostnames": True, "subdomain": draw(st.sampled_from(["net", "a"]))}
    if draw(st.integers(0, 3)) == 0:
        spec["coordinator"] = {"replicatedJob": "workers", "jobIndex": 0, "podIndex": 0}
    if claims:
        claim = {
            "metadata": {"name": "claim"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
        spec["volumeClaimPolicies"] = [{"templates": [claim]}]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "train"},
        "spec": spec,
    }


@st.composite
def _replicated(draw: Draw, name: str, *, claims: bool) -> dict[str, Any]:
    mounts = [{"name": "data", "mountPath": "/data"}]
    if claims:
        mounts.append({"name": "claim", "mountPath": "/claim"})
    main = {
        "name": "main",
        "image": "python:3.12",
        "command": ["python", "train.py"],
        "env": [{"name": "A", "value": "1"}],
        "ports": [{"name": "http", "containerPort": 80}],
        "volumeMounts": mounts,
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "nvidia.com/gpu": 1}},
    }
    pod: dict[str, Any] = {
        "restartPolicy": draw(st.sampled_from(["Never", "Never", "OnFailure"])),
        "containers": [main],
        "volumes": [
            {"name": "data", "emptyDir": {}},
            {"name": "scratch", "emptyDir": {"medium": "Memory"}},
            {"name": "config", "configMap": {"name": "a"}},
            {"name": "block", "persistentVolumeClaim": {"claimName": "a"}},
        ],
    }
    if draw(st.integers(0, 3)) == 0:
        init = {"name": "init", "image": "busybox"}
        pod["initContainers"] = [init | ({"restartPolicy": "Always"} if draw(st.booleans()) else {})]
    if draw(st.integers(0, 3)) == 0:
        pod["containers"].append({"name": "second", "image": "busybox"})
    pods = draw(st.sampled_from([1, 1, 2, 5]))
    job: dict[str, Any] = {"completions": pods, "parallelism": pods, "template": {"spec": pod}}
    if draw(st.booleans()):
        job["completionMode"] = (
            draw(st.sampled_from(["Indexed", "Indexed", "NonIndexed"])) if name != "workers" else "Indexed"
        )
    if pod["restartPolicy"] == "Never" and draw(st.integers(0, 2)) == 0:
        job["podFailurePolicy"] = {
            "rules": [
                {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
            ]
        }
    template: dict[str, Any] = {"spec": job}
    if draw(st.integers(0, 4)) == 0:
        template["metadata"] = {"labels": {"a": "b"}}
        job["template"]["metadata"] = {"labels": {"a": "b"}, "annotations": {"a": "b"}}
    found = {"name": name, "template": template}
    if draw(st.booleans()):
        found["replicas"] = draw(st.sampled_from([1, 2, 3, 0]))
    return found


def _field(draw: Draw, tree: dict[str, Any]) -> str:
    """Set one field to a value near an edge."""
    places = _places(tree)
    kind = draw(st.sampled_from([kind for kind in _KINDS if places.get(kind)]))
    here, place = draw(st.sampled_from(places[kind]))
    if kind == "volume":
        source = draw(st.sampled_from(sorted(VOLUME_SOURCES)))
        if draw(st.integers(0, 5)):
            for other in [name for name in place if name != "name"]:
                del place[other]
        place[source] = copy.deepcopy(draw(VOLUME_SOURCES[source]))
        return f"{here}.{source} = {place[source]!r}"
    name = draw(st.sampled_from(sorted(_FIELDS[kind])))
    place[name] = copy.deepcopy(draw(_FIELDS[kind][name]))
    return f"{here}.{name} = {place[name]!r}"


_FIELDS: dict[str, dict[str, Strategy]] = {
    "top": {
        "apiVersion": mostly(["jobset.x-k8s.io/v1alpha2"], ["v1", "", None]),
        "status": st.just({}),
        "x": st.just(1),
    },
    "metadata": META,
    "spec": SPEC,
    "replicated job": REPLICATED,
    "template's metadata": TEMPLATE_META,
    "job": JOB,
    "pod": POD,
    "container": CONTAINER,
}
# How often each kind of place is chosen: by the number of its fields, and by how much there is to each.
_KINDS = [
    "top", *["metadata"] * 3, *["spec"] * 8, *["replicated job"] * 4, *["template's metadata"] * 3,
    *["job"] * 10, *["pod"] * 18, *["container"] * 18, *["volume"] * 8,
]  # fmt: skip


def _places(tree: dict[str, Any]) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """By kind: every mapping of the tree whose fields have edges of their own."""
    found: dict[str, list[tuple[str, dict[str, Any]]]] = {"top": [("", tree)]}

    def add(kind: str, here: str, value: Any) -> dict[str, Any]:
        if isinstance(value, dict):
            found.setdefault(kind, []).append((here, value))
            return value
        return {}

    add("metadata", "metadata", tree.get("metadata"))
    spec = add("spec", "spec", tree.get("spec"))
    for index, replicated in enumerate(_mappings(spec.get("replicatedJobs"))):
        here = f"spec.replicatedJobs[{index}]"
        template = add("replicated job", here, replicated).get("template")
        if not isinstance(template, dict):
            continue
        here = f"{here}.template"
        add("template's metadata", f"{here}.metadata", template.setdefault("metadata", {}))
        pod_template = add("job", f"{here}.spec", template.get("spec")).get("template")
        if not isinstance(pod_template, dict):
            continue
        here = f"{here}.spec.template"
        add("template's metadata", f"{here}.metadata", pod_template.setdefault("metadata", {}))
        pod = add("pod", f"{here}.spec", pod_template.get("spec"))
        for lists, kind in (
            ("containers", "container"),
            ("initContainers", "container"),
            ("volumes", "volume"),
        ):
            for place, item in enumerate(_mappings(pod.get(lists))):
                add(kind, f"{here}.spec.{lists}[{place}]", item)
    return found


def _mappings(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _wrong(draw: Draw, tree: dict[str, Any]) -> str:
    """Put a value of any type anywhere, take a field away, or add one that does not exist."""
    here, parent, name = draw(st.sampled_from(list(_nodes("", tree))))
    how = draw(st.sampled_from(["wrong", "wrong", "wrong", "absent", "unknown"]))
    if how == "unknown" and isinstance(parent, dict):
        parent[f"{name}X"] = 1
    elif how == "absent":
        del parent[name]
    else:
        parent[name] = copy.deepcopy(draw(st.sampled_from(WRONG)))
        return f"{here} = {parent[name]!r}"
    return f"{here} {how}"


def _list(draw: Draw, tree: dict[str, Any]) -> str:
    """Repeat an item of a list, or empty the list."""
    lists = [
        (here, parent[name])
        for here, parent, name in _nodes("", tree)
        if isinstance(parent[name], list) and parent[name]
    ]
    if not lists:
        return "nothing"
    here, items = draw(st.sampled_from(lists))
    if draw(st.integers(0, 3)) == 0:
        items.clear()
        return f"{here} = []"
    items.insert(draw(st.integers(0, len(items))), copy.deepcopy(draw(st.sampled_from(items))))
    return f"{here} repeats an item"


def _length(draw: Draw, tree: dict[str, Any]) -> str:
    """Make the JobSet's name as long as its longest child allows, give or take one."""
    spec, meta = tree.get("spec"), tree.get("metadata")
    if not isinstance(spec, dict) or not isinstance(meta, dict):
        return "nothing"
    room = 63
    for job in _mappings(spec.get("replicatedJobs")):
        replicas = job.get("replicas", 1)
        template = job.get("template")
        job_spec = template.get("spec") if isinstance(template, dict) else None
        completions = job_spec.get("completions") if isinstance(job_spec, dict) else None
        tail = f"-{job.get('name')}-{(replicas if isinstance(replicas, int) else 1) - 1}"
        if isinstance(completions, int):
            tail += f"-{completions - 1}-abcde"
        room = min(room, 63 - len(tail))
    if isinstance(spec.get("coordinator"), dict) and draw(st.booleans()):
        room = (63 - len("-workers-0-0.")) // 2
    kind = draw(st.sampled_from(["name", "name", "generateName"]))
    length = max(
        room + draw(st.integers(-1, 1)) - (0 if kind == "name" else draw(st.sampled_from([0, 5]))), 1
    )
    meta.pop("name", None)
    meta[kind] = "x" * length
    return f"metadata.{kind} has {length} characters"


_MOVES = [*[_field] * 24, _wrong, _list, _length]


def _nodes(here: str, value: Any) -> Iterator[tuple[str, Any, Any]]:
    """Every place below a value: its path, what holds it, and under which key or index."""
    for name, item in value.items() if isinstance(value, dict) else enumerate(value):
        where = f"{here}[{name}]" if isinstance(name, int) else f"{here}.{name}".lstrip(".")
        yield where, value, name
        if isinstance(item, dict | list):
            yield from _nodes(where, item)
