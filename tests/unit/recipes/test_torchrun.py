import ast
from pathlib import Path

import pytest
from recipe_pods import container, contexts, environments, words

import jobset_steps.worker
from jobset_steps.recipes import torchrun
from jobset_steps.spec.check import check
from jobset_steps.spec.defaults import with_defaults
from jobset_steps.spec.fault import InvalidSpec
from jobset_steps.spec.jobset import FailurePolicy, JobSet, VolumeClaimPolicy

IMAGE = "registry.example/train:1"


def train(**more):
    return torchrun("train", **({"image": IMAGE, "script": "train.py"} | more))


def test_the_result_is_a_plain_jobset_that_passes_every_rule():
    jobset = train(
        nodes=4, failure_policy=FailurePolicy.resilient(max_restarts=3), checkpoints="pvc://ckpt/a"
    )

    assert isinstance(jobset, JobSet)
    assert check(jobset) == ()
    assert JobSet.from_yaml(jobset.to_yaml()) == jobset
    assert with_defaults(jobset) == jobset


def test_c4_nodes_are_parallelism_completions_and_indexes():
    job = train(nodes=4).spec.replicated_jobs[0].template.spec

    assert (job.parallelism, job.completions, job.completion_mode) == (4, 4, "Indexed")


def test_every_pod_knows_its_rank_and_all_the_same_coordinator():
    pods = contexts(train(nodes=3, checkpoints="pvc://ckpt/team/a"), attempt=2)

    assert [pod.rank for pod in pods] == [0, 1, 2]
    assert {pod.world_size for pod in pods} == {3}
    assert {pod.coordinator for pod in pods} == {"train-1a2b3c4d-node-0-0.train-1a2b3c4d"}
    assert {pod.port for pod in pods} == {29500}
    assert {pod.attempt for pod in pods} == {2}
    assert [pod.is_leader for pod in pods] == [True, False, False]
    assert {(pod.run, pod.step, pod.model_uri) for pod in pods} == {("run 1", "train", "s3://models/m")}


def test_b12_the_attempt_is_in_the_rendezvous_id_and_torchrun_restarts_nothing():
    jobset = train(nodes=2)

    for attempt in (0, 1):
        for rank, pod in enumerate(environments(jobset, attempt=attempt)):
            said = pod["args"].splitlines()
            assert f"--rdzv_id=train-1a2b3c4d-{attempt}" in said
            assert "--max_restarts=0" in said
            assert "--monitor_interval=0.1" in said
            assert "--nnodes=2" in said
            assert f"--node_rank={rank}" in said
            assert "--rdzv_endpoint=train-1a2b3c4d-node-0-0.train-1a2b3c4d:29500" in said


def test_b12_the_pod_waits_for_the_coordinators_name_before_anything_else():
    made = container(train(nodes=2))

    assert made["command"][:2] == ["python3", "-c"]
    assert "wait_for_name" in made["command"][2]
    assert made["command"][3] == "--"


def test_with_c10d_torchrun_gives_the_ranks():
    said = words(train(nodes=2, rendezvous="c10d"))

    assert "--rdzv_backend=c10d" in said
    assert not [word for word in said if word.startswith("--node_rank")]


def test_what_travels_with_the_pod_is_changed_by_no_engine_on_the_way():
    for name in ("entry.py", "mpi.py", "processes.py", "torchrun.py"):
        source = (Path(jobset_steps.worker.__file__).parent / name).read_text()

        # Kubernetes expands $(X), Argo {{x}}, a template $hole{x}.
        assert not any(mark in source for mark in ("$(", "{{", "}}", "$hole"))
        # It runs on Pythons older than ours.
        ast.parse(source, feature_version=(3, 8))


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ({"script": "train.py"}, ["train.py", "--lr", "0.1", "--fast", "true"]),
        ({"script": Path("/app/train.py")}, ["/app/train.py", "--lr", "0.1", "--fast", "true"]),
        ({"module": "pkg.train"}, ["-m", "pkg.train", "--lr", "0.1", "--fast", "true"]),
        ({"command": ["./train", "go"]}, ["--no_python", "./train", "go", "--lr", "0.1", "--fast", "true"]),
    ],
)
def test_script_module_or_command_and_its_arguments_as_text(what, said):
    jobset = torchrun("train", image=IMAGE, args=["--lr", 0.1, "--fast", True], **what)

    assert words(jobset)[-len(said) :] == said


def test_d4_checkpoints_are_keyed_by_run_and_step_and_not_by_attempt():
    jobset = train(checkpoints="pvc://ckpt/team/a")

    first, again = (contexts(jobset, attempt=attempt)[0].checkpoint_dir for attempt in (0, 1))
    other = contexts(jobset, name="train-1a2b3c4d-g2")[0].checkpoint_dir

    assert first == again == other == "/jobset-steps/checkpoints/team/a/run-1/train"
    assert {"name": "checkpoints", "mountPath": "/jobset-steps/checkpoints"} in container(jobset)[
        "volumeMounts"
    ]


def test_checkpoints_may_go_to_an_object_store():
    jobset = train(checkpoints="s3://bucket/ckpt/")

    assert contexts(jobset)[0].checkpoint_dir == "s3://bucket/ckpt/run-1/train"
    assert "volumeMounts" not in container(jobset)


@pytest.mark.parametrize("place", ["/data/ckpt", "file:///ckpt", "pvc://", "pvc://Bad_Name/x", "s3://", ""])
def test_a_place_that_does_not_outlive_the_jobset_is_refused(place):
    with pytest.raises(InvalidSpec, match=r"checkpoints: .*pvc://claim/sub/path"):
        train(checkpoints=place)


@pytest.mark.parametrize("claim", ["scratch", "scratch-train"])
def test_a_claim_that_carries_the_jobsets_name_is_refused_for_checkpoints(claim):
    scratch = VolumeClaimPolicy.model_validate(
        {
            "templates": [
                {
                    "metadata": {"name": "scratch"},
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}},
                    },
                }
            ]
        }
    )

    jobset = train(volume_claim_policies=[scratch], checkpoints="pvc://ckpt")
    assert {"name": "scratch", "mountPath": "/scratch"} in container(jobset)["volumeMounts"]
    assert check(jobset) == ()

    with pytest.raises(InvalidSpec, match="next generation of the step gets another name"):
        train(volume_claim_policies=[scratch], checkpoints=f"pvc://{claim}/x")


def test_volumes_are_claims_by_uri_or_sources_as_in_a_manifest():
    jobset = train(volumes={"/data": "pvc://data/2026", "/dev/shm": {"emptyDir": {"medium": "Memory"}}})

    assert container(jobset)["volumeMounts"] == [
        {"name": "volume-0", "mountPath": "/data", "subPath": "2026"},
        {"name": "volume-1", "mountPath": "/dev/shm"},
    ]
    assert check(jobset) == ()
    with pytest.raises(InvalidSpec, match="is no volume, '/host' given"):
        train(volumes={"/data": "/host"})


def test_a_claim_is_one_volume_however_often_it_is_mounted():
    jobset = train(volumes={"/data": "pvc://work/data", "/out": "pvc://work"}, checkpoints="pvc://work/ckpt")

    assert container(jobset)["volumeMounts"] == [
        {"name": "volume-0", "mountPath": "/data", "subPath": "data"},
        {"name": "volume-0", "mountPath": "/out"},
        {"name": "volume-0", "mountPath": "/jobset-steps/checkpoints"},
    ]
    assert check(jobset) == ()


def test_a18_the_queue_is_a_label_of_the_jobset_and_of_nothing_else():
    jobset = train(queue="team-a")

    data = jobset.to_dict()
    assert data["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "team-a"}
    assert "queue-name" not in str(data["spec"])


def test_b11_sidecars_are_kept_out():
    meta = train().spec.replicated_jobs[0].template.spec.template["metadata"]

    assert meta["labels"]["sidecar.istio.io/inject"] == "false"
    assert meta["annotations"]["sidecar.istio.io/inject"] == "false"


def test_c8_a_pod_that_is_taken_away_fails_its_job_before_its_exit_code_is_judged():
    job = train(fatal_exit_codes=[17]).spec.replicated_jobs[0].template.spec

    first, second = job.pod_failure_policy.rules
    assert first.on_pod_conditions[0].type == "DisruptionTarget"
    assert second.on_exit_codes.values == (17,)
    assert (job.backoff_limit, job.pod_replacement_policy) == (0, "Failed")


def test_on_spot_machines_an_end_by_sigterm_is_told_apart_from_fatal_codes():
    jobset = train(failure_policy=FailurePolicy.spot(), fatal_exit_codes=[17])

    rules = jobset.spec.replicated_jobs[0].template.spec.pod_failure_policy.rules
    assert [rule.on_exit_codes.values for rule in rules[1:]] == [(143,), (17,)]
    assert check(jobset) == ()


def test_the_authors_environment_comes_last_and_may_refer_to_the_pods_own():
    jobset = train(
        nodes=2,
        env={
            "RANKS": "$(JOBSET_STEPS_WORLD_SIZE)",
            "DEBUG": True,
            "KEY": {"secretKeyRef": {"name": "s", "key": "k"}},
        },
    )

    pod = environments(jobset)[1]
    assert (pod["RANKS"], pod["DEBUG"], pod["KEY"], pod["PYTHONUNBUFFERED"]) == ("2", "true", "<KEY>", "1")


def test_further_pod_fields_are_the_authors():
    jobset = train(pod={"nodeSelector": {"gpu": "a100"}, "terminationGracePeriodSeconds": 120})

    assert jobset.spec.replicated_jobs[0].template.spec.template["spec"]["nodeSelector"] == {"gpu": "a100"}
    assert check(jobset) == ()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"script": None}, "exactly one of script, module and command"),
        ({"module": "m"}, "exactly one of script, module and command"),
        ({"args": "--lr 0.1"}, "args: is a list of words, not one text"),
        ({"rendezvous": "etcd"}, "rendezvous: is unknown, 'etcd' given"),
        ({"env": {"JOBSET_STEPS_PORT": 1}}, "the recipe sets these itself"),
        ({"pod": {"containers": []}}, "the recipe writes these fields itself"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_would_pass(wrong, said):
    with pytest.raises(InvalidSpec, match=said):
        train(**wrong)


@pytest.mark.parametrize("nodes", [0, -1])
def test_s2_a_number_of_nodes_that_trains_nothing_is_refused(nodes):
    with pytest.raises(InvalidSpec, match="nodes: at least 1: a Job of no pods succeeds without training"):
        train(nodes=nodes)
