"""What we refuse though the server accepts it: listed, explained, and nothing besides."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from jobset_steps.spec.rules.waivable import WAIVABLE
from tests.unit.spec.examples import changed, container, faults_of, job, jobset, pod, replicated

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "waivable-rules.md"
_HEAD = """# Rules that can be waived

`validate` and every compiler refuse what the cluster would refuse. They also refuse what it would accept and then hang on, or
mislead with. Those rules are listed here, all of them; `--waive NAME` (or `waive=("NAME",)`) lets one pass.

| rule | what would happen |
|---|---|
"""
J = "spec.replicatedJobs.0.template.spec"


def page() -> str:
    return _HEAD + "".join(f"| `{name}` | {why} |\n" for name, why in sorted(WAIVABLE.items()))


def waivable_in(source: str) -> set[str]:
    """Rules of the faults that a module makes waivable."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Fault":
            flags = [keyword.value for keyword in node.keywords if keyword.arg == "waivable"] + node.args[5:]
            if flags:
                rule = node.args[1]
                assert isinstance(rule, ast.Constant), ast.unparse(node)
                found.add(str(rule.value))
    return found


def test_every_waivable_rule_is_listed_with_what_would_happen() -> None:
    sources = (ROOT / "jobset_steps").rglob("*.py")
    assert set().union(*(waivable_in(path.read_text(encoding="utf-8")) for path in sources)) == set(WAIVABLE)


def test_the_page_of_waivable_rules_is_up_to_date(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--regenerate"):
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page(), "make golden writes it"


def _claims(*names: str) -> list[dict[str, object]]:
    return [
        {"name": f"v{number}", "persistentVolumeClaim": {"claimName": name}}
        for number, name in enumerate(names)
    ]


WAIVED = [
    ("claim-twice", jobset(replicated(spec=job(pod(volumes=_claims("a", "b", "a")))))),
    ("child-ttl", changed(jobset(), f"{J}.ttlSecondsAfterFinished", 60)),
    ("dropped-field", jobset(replicated(spec=job(pod(container(restartPolicy="Never")))))),
    (
        "dropped-field",
        jobset(
            replicated(
                spec=job(
                    pod(initContainers=[{"name": "i", "image": "i", "lifecycle": {"stopSignal": "SIGTERM"}}])
                )
            )
        ),
    ),
    (
        "dropped-field",
        jobset(replicated(spec=job(pod(volumes=[{"name": "v", "image": {"reference": "i"}}])))),
    ),
    ("job-name-empty", jobset(replicated(name=""))),
    ("negative-grace", jobset(replicated(spec=job(pod(terminationGracePeriodSeconds=-1))))),
    ("negative-replicas", jobset(replicated(), replicated("b", replicas=-1))),
    ("no-jobs", {"metadata": {"name": "train"}}),
    ("pod-computed", jobset(replicated(spec=job(pod(priority=5))))),
    ("pod-host-name", jobset(replicated(spec=job(pod(hostname="a"))))),
    ("volume-without-source", jobset(replicated(spec=job(pod(volumes=[{"name": "v"}]))))),
    (
        "manual-selector",
        jobset(
            replicated(
                spec=job(
                    {"metadata": {"labels": {"a": "b"}}, **pod()},
                    manualSelector=True,
                    selector={"matchLabels": {"a": "b"}},
                )
            )
        ),
    ),
]


@pytest.mark.parametrize(("rule", "tree"), WAIVED, ids=[row[0] for row in WAIVED])
def test_what_the_server_accepts_passes_once_its_rule_is_waived(rule: str, tree: dict[str, object]) -> None:
    assert {fault.rule for fault in faults_of(tree)} == {rule}
    assert faults_of(tree, waive=(rule,)) == ()
