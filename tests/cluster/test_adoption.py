"""Never train twice: launchers that are lost, come back, come twice, or meet somebody else's JobSet."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jobset_steps.errors import ApiError
from tests.cluster.conftest import Place
from tests.cluster.steps import Launcher, jobset, replicated

LONG = jobset(replicated("workers", "sleep 8; echo done", pods=2))


def uids(place: Place) -> set[str]:
    """Uids of all JobSets of the namespace that there are or that events tell of."""
    told = {
        event["involvedObject"]["uid"]
        for event in place.items("events")
        if event["involvedObject"].get("kind") == "JobSet"
    }
    return told | {item["metadata"]["uid"] for item in place.items("jobsets")}


def test_a1_a_launcher_killed_after_create_is_followed_by_one_that_adopts(
    place: Place, tmp_path: Path
) -> None:
    first = Launcher(place, LONG, tmp_path, "--run", "r1")
    first.until_it_says("Running")
    first.process.send_signal(signal.SIGKILL)
    first.process.communicate()
    outcome = tmp_path / "outcome.json"
    code, out, _ = Launcher(place, LONG, tmp_path, "--run", "r1", "-o", str(outcome)).ended()
    assert (code, out.split(":")[0]) == (0, "Succeeded")
    assert uids(place) == {json.loads(outcome.read_text())["uid"]}
    again = Launcher(place, LONG, tmp_path, "--run", "r1")
    assert again.ended()[:2] == (code, out)


def test_a2_two_launchers_at_once_make_one_jobset(place: Place, tmp_path: Path) -> None:
    launchers = [Launcher(place, LONG, tmp_path, "--run", "r1") for _ in range(3)]
    assert [launcher.ended()[0] for launcher in launchers] == [0, 0, 0]
    assert len(uids(place)) == 1


def test_a2_somebody_elses_jobset_of_that_name_is_named_and_left(place: Place, tmp_path: Path) -> None:
    probe = Launcher(place, LONG, tmp_path, "--run", "r1")
    probe.until_it_says("Running")
    (made,) = place.items("jobsets")
    name = made["metadata"]["name"]
    probe.process.send_signal(signal.SIGTERM)
    probe.ended()
    record = place.items("configmaps?labelSelector=jobset-steps/identity")[0]["metadata"]["name"]
    place.admin.call("DELETE", place.path(f"configmaps/{record}"))
    foreign = jobset(replicated("workers", "sleep 600"), name=name)
    foreign["spec"]["replicatedJobs"][0]["template"]["spec"]["completionMode"] = "Indexed"
    uid = place.create("jobsets", foreign)["metadata"]["uid"]
    code, out, _ = Launcher(place, LONG, tmp_path, "--run", "r1").ended()
    assert code == 64
    assert name in out
    assert [item["metadata"]["uid"] for item in place.items("jobsets")] == [uid]


def test_a_jobset_that_was_deleted_by_hand_is_never_made_again(place: Place, tmp_path: Path) -> None:
    launcher = Launcher(place, LONG, tmp_path, "--run", "r1")
    launcher.until_it_says("Running")
    (made,) = place.items("jobsets")
    place.admin.call("DELETE", place.path(f"jobsets/{made['metadata']['name']}"))
    code, out, _ = launcher.ended()
    assert (code, out.startswith("DeletedExternally")) == (1, True)
    code, again, _ = Launcher(place, LONG, tmp_path, "--run", "r1", "--retry", "1").ended()
    assert (code, again) == (1, out)
    assert place.items("jobsets") == []


def test_a_persons_retry_of_a_failure_trains_again_and_another_spec_is_refused(
    place: Place, tmp_path: Path
) -> None:
    fails = jobset(replicated("workers", "exit 3"))
    assert Launcher(place, fails, tmp_path, "--run", "r1").ended()[0] == 1
    assert Launcher(place, fails, tmp_path, "--run", "r1", "--retry", "1").ended()[0] == 1
    assert len(uids(place)) == 1
    assert Launcher(place, fails, tmp_path, "--run", "r1").ended()[0] == 1
    assert len(uids(place)) == 2
    code, out, _ = Launcher(place, jobset(replicated("workers", "exit 4")), tmp_path, "--run", "r1").ended()
    assert (code, out.startswith("Rejected")) == (64, True)


def test_what_only_the_server_can_refuse_is_rejected_before_it_hangs(place: Place, tmp_path: Path) -> None:
    tree = jobset(replicated("workers", "true", pod={"priorityClassName": "none-of-this-name"}))
    code, out, _ = Launcher(place, tree, tmp_path, "--run", "r1").ended()
    assert (code, out.startswith("Rejected")) == (64, True)
    assert "none-of-this-name" in out
    assert place.items("jobsets") == []


def test_an_account_without_rights_is_told_so(
    place: Place, tmp_path: Path, until: Callable[..., Any]
) -> None:
    place.admin.call("DELETE", place.path("rolebindings/jobset-steps-launcher"))

    def forbidden() -> bool:
        try:
            place.cluster().load("0123456789")
        except ApiError as error:
            return error.kind == "forbidden"
        return False

    until(forbidden)
    code, out, _ = Launcher(place, LONG, tmp_path, "--run", "r1").ended()
    assert (code, out.startswith("Forbidden")) == (77, True)
    assert "configmaps" in out
