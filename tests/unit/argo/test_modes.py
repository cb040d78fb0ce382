"""What each mode's template promises Argo, and what a mode refuses because it cannot carry it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from jobset_steps.argo import argo_step, document, exit_templates, template
from jobset_steps.errors import BadInput
from jobset_steps.outcome import Verdict
from jobset_steps.outcome.types import exit_code
from jobset_steps.spec.budgets import Budgets
from jobset_steps.spec.fault import InvalidSpec
from tests.unit.argo.argo_templates import argued
from tests.unit.spec.examples import changed, jobset, replicated


def refused(tree: dict[str, Any] | None = None, **options: Any) -> list[str]:
    with pytest.raises(InvalidSpec) as error:
        argo_step(tree or argued(), **options)
    return [fault.rule for fault in error.value.faults]


def manifest(step: Any) -> tuple[str, dict[str, Any]]:
    """A native step's manifest, and the same with words in place of what Argo computes."""
    text: str = template(step)["resource"]["manifest"]
    made: dict[str, Any] = json.loads(re.sub(r"\{\{=.*?\}\}", "computed", text))
    return text, made


def test_a6_both_conditions_stand_with_one_term_each() -> None:
    resource = template(argo_step(argued(), mode="native"))["resource"]
    assert resource["successCondition"] == "status.terminalState == Completed"
    assert resource["failureCondition"] == "status.terminalState == Failed"


def test_a12_the_manifest_is_one_json_object() -> None:
    text, made = manifest(argo_step(argued("---\n{}"), mode="native"))
    assert made["kind"] == "JobSet"
    assert "\n" not in text
    assert yaml.safe_load(text)["spec"] == made["spec"] or "computed" in json.dumps(made["spec"])


def test_a2_a_waiter_that_comes_back_finds_its_jobset() -> None:
    step = template(argo_step(argued(), mode="native"))
    assert (step["resource"]["action"], step["resource"]["flags"]) == ("apply", ["--server-side"])
    (name,) = re.findall(r'"metadata":\{"name":"(.*?)"', step["resource"]["manifest"])
    assert "retries" not in name
    assert "pod.name" not in name
    assert "workflow.uid + node.name" in name


def test_a3_the_workflow_owns_the_jobset_and_another_namespace_is_refused() -> None:
    _, made = manifest(argo_step(argued(), mode="native"))
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["blockOwnerDeletion"]) == ("Workflow", False)
    for mode in ("native", "launcher", "plugin"):
        assert "other-namespace" in refused(mode=mode, namespace="other")
    assert argo_step(argued(), namespace="other", waive=("other-namespace",)).namespace == "other"


def test_a_native_name_leaves_room_for_its_digits() -> None:
    long = argued(name="a" * 60)
    _, made = manifest(argo_step(changed(long, "metadata.name", "a" * 40), mode="native"))
    whole = made["metadata"]["name"].replace("computed", "0" * 8)
    assert len(whole) + len("-workers-0-0-abcde") <= 63


def test_argo_does_not_take_the_pods_of_a_native_jobset_for_its_own() -> None:
    text, made = manifest(argo_step(argued(), mode="native"))
    assert "workflows.argoproj.io/" not in text
    assert "jobset-steps/run" in made["metadata"]["labels"]


def test_references_of_a_native_jobset_to_itself_follow_its_name() -> None:
    text, _ = manifest(argo_step(argued("train-workers-0-0.train:29500"), mode="native"))
    digits = "{{=sprig.trunc(8, sprig.sha256sum(workflow.uid + node.name))}}"
    assert f'"train-{digits}-workers-0-0.train-{digits}:29500"' in text


def test_native_refuses_at_once_all_that_it_cannot_carry() -> None:
    tree = changed(argued(), "spec.replicatedJobs.0.replicas", "{{workflow.parameters.n}}")
    tree = changed(tree, "spec.suspend", True)
    rules = refused(
        tree,
        mode="native",
        on_failure="branch",
        slot="monday",
        report=True,
        budgets=Budgets(queue="1h", startup="1h", outage="5m"),
    )
    assert sorted(rules) == [
        *("native-branch", "native-budget", "native-budget", "native-budget"),
        *("native-parameter", "native-report", "native-slot", "native-suspend"),
    ]


def test_native_refuses_characters_that_yaml_cannot_hold() -> None:
    assert refused(argued("\x7f"), mode="native") == ["native-character"]
    assert argo_step(argued("\x7f é 😀 \x85"), mode="launcher")


def test_a_native_step_waits_for_queue_and_run_together_and_not_for_ever() -> None:
    assert template(argo_step(argued(), mode="native"))["activeDeadlineSeconds"] == 8 * 86400
    assert template(argo_step(argued(), mode="native", deadline="1h"))["activeDeadlineSeconds"] == 3600


def test_a13_the_preset_retries_exactly_what_is_worth_it() -> None:
    retry = template(argo_step(argued()))["retryStrategy"]
    assert (retry["limit"], retry["retryPolicy"]) == ("5", "Always")
    assert retry["expression"].startswith("lastRetry.status == 'Error' or ")
    codes = {int(code) for code in re.findall(r"'(\d+)'", retry["expression"])}
    assert codes == {
        exit_code(Verdict.FAILED, retryable=True),
        *(exit_code(Verdict.UNKNOWN, reason=reason) for reason in ("LauncherEvicted", "ApiUnavailable")),
        *(exit_code(Verdict.UNKNOWN, reason=reason) for reason in ("InternalError", "LauncherOOMKilled")),
    }
    assert not codes & {exit_code(verdict) for verdict in Verdict if verdict is not Verdict.UNKNOWN}
    assert "retryStrategy" not in template(argo_step(argued(), retries=0))


def test_a4_a_launcher_has_longer_to_end_than_the_trainings_pods() -> None:
    quick = template(argo_step(argued()))
    assert json.loads(quick["podSpecPatch"]) == {"terminationGracePeriodSeconds": 60}
    pod = "spec.replicatedJobs.0.template.spec.template.spec.terminationGracePeriodSeconds"
    slow = template(argo_step(changed(argued(), pod, 300)))
    assert json.loads(slow["podSpecPatch"]) == {"terminationGracePeriodSeconds": 330}
    assert json.loads(slow["inputs"]["artifacts"][0]["raw"]["data"])["grace"] == 325


def test_a18_a_queue_is_the_jobsets_and_never_the_waiters() -> None:
    tree = changed(argued(), "metadata.labels", {"kueue.x-k8s.io/queue-name": "q"})
    for mode in ("native", "launcher", "plugin"):
        made = template(argo_step(tree, mode=mode))
        assert "kueue" not in json.dumps(made.get("metadata", {}))
        assert json.dumps(made).count("kueue.x-k8s.io") == 1


def test_b11_a_waiting_pod_has_no_sidecar() -> None:
    for mode in ("native", "launcher"):
        meta = template(argo_step(argued(), mode=mode))["metadata"]
        assert (
            meta["labels"]["sidecar.istio.io/inject"]
            == meta["annotations"]["sidecar.istio.io/inject"]
            == "false"
        )


def test_every_output_of_a_launcher_has_a_default() -> None:
    for parameter in template(argo_step(argued()))["outputs"]["parameters"]:
        assert isinstance(parameter["valueFrom"]["default"], str)
        assert "{{" not in parameter["valueFrom"]["default"]


def test_a_report_is_an_artifact_only_where_it_is_asked_for() -> None:
    assert "artifacts" not in template(argo_step(argued()))["outputs"]
    (artifact,) = template(argo_step(argued(), report=True))["outputs"]["artifacts"]
    assert artifact["optional"] is True
    assert refused(mode="plugin", report=True) == ["plugin-report"]


def test_a_plugin_template_declares_no_outputs_and_asks_for_retries_only_where_argo_knows_them() -> None:
    made = template(argo_step(argued(), mode="plugin"))
    assert "outputs" not in made
    assert made["plugin"]["jobset-steps"]["retry"] == "{{retries}}"
    alone = template(argo_step(argued(), mode="plugin", retries=0))
    assert "retry" not in alone["plugin"]["jobset-steps"]
    assert "{{retries}}" not in json.dumps(alone)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"name": "no spaces"}, "step-name"),
        ({"mode": "fast"}, "enum"),
        ({"on_failure": "ignore"}, "enum"),
        ({"retries": -1}, "minimum"),
        ({"deadline": "soon"}, "duration"),
        ({"slot": "a {{workflow.name}}"}, "slot"),
    ],
)
def test_a_wrong_option_is_a_fault(options: dict[str, Any], rule: str) -> None:
    assert refused(**options) == [rule]


def test_faults_of_the_spec_and_of_the_options_come_together() -> None:
    tree = jobset(replicated("Workers"))
    assert refused(tree, name="no spaces") == ["name-form", "step-name"]
    assert issubclass(InvalidSpec, BadInput)


def test_the_exit_handler_costs_nothing_where_the_workflow_succeeded() -> None:
    for mode in ("launcher", "plugin"):
        handler, sweep = exit_templates(argo_step(argued(), mode=mode))
        ((call,),) = handler["steps"]
        assert call["when"] == "{{workflow.status}} != Succeeded"
        assert call["template"] == sweep["name"]


def test_without_us_on_the_cluster_the_exit_handler_deletes_only_where_a_waiter_was_ended_or_lost() -> None:
    handler, sweep = exit_templates(argo_step(argued(), mode="native"))
    ((call,),) = handler["steps"]
    (words,) = re.findall(r"matches '(.*?)'", call["when"])
    assert re.search(words, "Stopped with strategy 'Stop'")
    assert re.search(words, "retry exceeded workflow deadline 2026-12-01")
    assert not re.search(words, "failure condition '{status.terminalState == [Failed]}' evaluated true")
    assert sweep["resource"]["action"] == "delete"
    assert "container" not in sweep


def test_a_workflow_takes_what_its_step_needs_as_arguments() -> None:
    tree = argued("{{workflow.parameters.data}}", {"$hole": "lr"}, "{{workflow.name}}")
    whole = document(argo_step(tree))
    assert whole["spec"]["arguments"] == {"parameters": [{"name": "data"}, {"name": "lr"}]}
    assert "parameters" not in whole["spec"]["templates"][0]["inputs"]
    shared = document(argo_step(tree), "template")
    assert shared["spec"]["templates"][0]["inputs"]["parameters"] == [{"name": "data"}, {"name": "lr"}]
    assert shared["metadata"] == {"name": "train"}
