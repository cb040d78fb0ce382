"""The templates of components/argo, which take any spec as a parameter."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobset_steps.argo.generic import files
from jobset_steps.errors import BadInput
from jobset_steps.launch.argo import decoded, request_of
from jobset_steps.spec.budgets import Budgets
from jobset_steps.spec.template import SpecTemplate
from tests.unit.argo.argo_templates import NASTY, argued
from tests.unit.launch.test_argo_launcher import POD

COMPONENTS = Path(__file__).resolve().parents[3] / "components" / "argo"


@pytest.mark.parametrize("name", sorted(files()))
def test_components_are_as_they_are_made(name: str) -> None:
    """`python -m jobset_steps.argo.generic components/argo` writes them anew."""
    assert (COMPONENTS / name).read_text(encoding="utf-8") == files()[name]


def launcher() -> dict[str, Any]:
    document = yaml.safe_load(files()["workflow-template.yaml"])
    made: dict[str, Any] = document["spec"]["templates"][0]
    return made


def asked(**parameters: str) -> Any:
    """The request as the launcher finds it, with these parameters and the template's own for the rest."""
    given = {each["name"]: each.get("value", "") for each in launcher()["inputs"]["parameters"]} | parameters
    text = launcher()["inputs"]["artifacts"][0]["raw"]["data"]
    text = re.sub(
        r"\{\{=sprig\.b64enc\(inputs\.parameters\['([-\w]+)'\]\)\}\}",
        lambda tag: base64.b64encode(given[tag[1]].encode()).decode(),
        text,
    )
    return decoded(json.loads(re.sub(r"\{\{=asInt.*?\}\}", "55", text)))


def test_a_spec_alone_is_enough_and_the_budgets_are_the_defaults() -> None:
    request, _ = request_of(asked(spec=yaml.safe_dump(argued(), allow_unicode=True)), POD)
    assert request.budgets == Budgets()
    assert (request.on_failure, request.slot, request.grace) == ("fail", "", 55)


def test_values_fill_the_holes_of_the_spec() -> None:
    values = {"a": NASTY, "b": 3}
    spec = json.dumps(argued({"$hole": "a"}, {"$hole": "b"}))
    request, _ = request_of(
        asked(spec=spec, values=json.dumps(values), slot="monday", **{"on-failure": "branch"}), POD
    )
    assert request.values == {"a": NASTY, "b": "3"}
    assert isinstance(request.spec, SpecTemplate)
    assert (request.on_failure, request.slot) == ("branch", "monday")


def test_values_that_are_no_object_are_refused() -> None:
    with pytest.raises(BadInput, match="must be a JSON object"):
        asked(spec="{}", values="[1]")


def test_the_plugin_takes_the_same_parameters() -> None:
    templates = {
        each["name"]: each
        for each in yaml.safe_load(files()["cluster-workflow-template.yaml"])["spec"]["templates"]
    }
    assert sorted(templates) == ["jobset-steps-exit", "jobset-steps-sweep", "launcher", "plugin"]
    names = [each["name"] for each in templates["plugin"]["inputs"]["parameters"]]
    assert set(names) <= {each["name"] for each in templates["launcher"]["inputs"]["parameters"]}
    assert templates["plugin"]["plugin"]["jobset-steps"]["spec"] == "{{=inputs.parameters['spec']}}"
