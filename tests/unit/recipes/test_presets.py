"""Presets: what each asks of the pods, how they get into a spec, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

from jobset_steps.recipes import Role, leader_workers, torchrun
from jobset_steps.recipes.presets import (
    TPU_VERSIONS,
    Preset,
    Tpu,
    eks_gpus,
    exclusive_placement,
    gke_gpus,
    gpus,
    kueue_topology,
    nccl_infiniband,
    nccl_sockets,
    tpu_slice,
    with_presets,
)
from jobset_steps.spec.check import check
from jobset_steps.spec.fault import InvalidSpec
from jobset_steps.spec.jobset import JobSet
from jobset_steps.spec.template import SpecTemplate

EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
ALL = [
    gpus(8),
    gpus(1, resource="amd.com/gpu"),
    gpus(2, product="NVIDIA-H100-80GB-HBM3"),
    gke_gpus("nvidia-h100-80gb", 8),
    eks_gpus("p5.48xlarge"),
    nccl_sockets(),
    nccl_infiniband(8),
    exclusive_placement("topology.kubernetes.io/zone"),
    kueue_topology("cloud.google.com/gce-topology-block"),
    kueue_topology("rack", mode="preferred", slice_level="kubernetes.io/hostname", slice_size=2),
    kueue_topology(None),
    tpu_slice(Tpu("v5e", "4x4")),
]


def train(**more: Any) -> Any:
    return torchrun("train", **({"image": "i", "script": "t.py", "nodes": 4} | more))


def pod(jobset: JobSet, number: int = 0) -> dict[str, Any]:
    return jobset.spec.replicated_jobs[number].template.spec.template


def container(jobset: JobSet, number: int = 0) -> dict[str, Any]:
    return pod(jobset, number)["spec"]["containers"][0]


def env(jobset: JobSet) -> dict[str, str]:
    return {one["name"]: one.get("value", "") for one in container(jobset)["env"]}


@pytest.mark.parametrize("preset", ALL, ids=lambda preset: preset.name)
def test_a_spec_with_a_preset_passes_every_rule_and_the_spec_itself_is_left_as_it_was(preset: Preset) -> None:
    before = train()
    text = before.to_yaml()

    made = with_presets(before, preset)

    assert check(made) == ()
    assert made != before
    assert before.to_yaml() == text
    assert with_presets(made, preset) == made


def test_gpus_come_with_shared_memory_and_a_toleration() -> None:
    made = with_presets(train(), gpus(8, product="NVIDIA-H100-80GB-HBM3"))

    assert container(made)["resources"] == {"limits": {"nvidia.com/gpu": 8}}
    spec = pod(made)["spec"]
    assert spec["nodeSelector"] == {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    assert spec["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    assert {"name": "dev-shm", "mountPath": "/dev/shm"} in container(made)["volumeMounts"]
    assert {"name": "dev-shm", "emptyDir": {"medium": "Memory"}} in spec["volumes"]


def test_an_instance_with_efa_is_all_of_it_and_tells_libfabric() -> None:
    made = with_presets(train(resources={"requests": {"memory": "1Ti"}}), eks_gpus("p5.48xlarge"))

    devices = {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 32, "hugepages-2Mi": "5120Mi"}
    assert container(made)["resources"] == {
        "limits": devices,
        "requests": {"cpu": "1", **devices, "memory": "1Ti"},
    }
    assert env(made)["FI_PROVIDER"] == "efa"
    assert pod(made)["spec"]["nodeSelector"] == {"node.kubernetes.io/instance-type": "p5.48xlarge"}


def test_rdma_may_pin_memory() -> None:
    mine = {"add": ["SYS_PTRACE"]}
    spec = leader_workers(
        "rl",
        leader=Role(image="i", script="l.py"),
        workers=Role(image="i", script="w.py", container={"securityContext": {"capabilities": mine}}),
        count=2,
    )
    made = with_presets(spec, nccl_infiniband(2), replicated_jobs=["workers"])

    assert container(made, 1)["securityContext"]["capabilities"]["add"] == ["SYS_PTRACE", "IPC_LOCK"]
    assert container(made, 1)["resources"]["limits"] == {"rdma/hca_shared_devices_a": 2}
    assert "securityContext" not in container(made, 0)


def test_what_an_author_said_of_environment_memory_and_volumes_stays() -> None:
    spec = train(
        env={"NCCL_SOCKET_IFNAME": "net1"},
        resources={"requests": {"cpu": 90}},
        volumes={"/dev/shm": {"emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}}},
    )

    made = with_presets(spec, nccl_sockets(), eks_gpus("p4d.24xlarge"))

    assert (env(made)["NCCL_SOCKET_IFNAME"], env(made)["NCCL_IB_DISABLE"]) == ("net1", "1")
    assert container(made)["resources"]["requests"]["cpu"] == 90
    assert [mount["mountPath"] for mount in container(made)["volumeMounts"]] == ["/dev/shm"]


@pytest.mark.parametrize(
    ("spec", "preset", "said"),
    [
        (
            {"resources": {"limits": {"nvidia.com/gpu": 4}}},
            gpus(8),
            r"containers\[0\].resources.limits\['nvidia.com/gpu'\]: gpus\(8\) asks for another amount, 4 given; 8",
        ),
        (
            {"pod": {"nodeSelector": {"cloud.google.com/gke-accelerator": "nvidia-l4"}}},
            gke_gpus("nvidia-b200", 8),
            r"nodeSelector\['cloud.google.com/gke-accelerator'\]: .* needs another value, 'nvidia-l4' given",
        ),
        (
            {"nodes": 2},
            tpu_slice(Tpu("v5e", "4x4")),
            r"parallelism: a slice of 4x4 v5e has 4 hosts, one pod each, 2 given; 4 \[preset-pods\]",
        ),
    ],
)
def test_a_contradiction_is_a_fault_with_its_place(spec: dict[str, Any], preset: Preset, said: str) -> None:
    with pytest.raises(InvalidSpec, match=said):
        with_presets(train(**spec), preset)


def test_two_placements_that_differ_are_a_fault() -> None:
    with pytest.raises(InvalidSpec, match=r"metadata.annotations\['alpha.jobset.*'zone' given; rack"):
        with_presets(train(), exclusive_placement("zone"), exclusive_placement("rack"))


def test_a_preset_for_some_replicated_jobs_leaves_the_others_alone() -> None:
    spec = leader_workers(
        "rl", leader=Role(image="i", script="l.py"), workers=Role(image="i", script="w.py"), count=2
    )
    made = with_presets(spec, gpus(1), exclusive_placement("rack"), replicated_jobs=["workers"])

    assert "resources" not in container(made, 0)
    assert container(made, 1)["resources"]["limits"] == {"nvidia.com/gpu": 1}
    leader, workers = (job.template.metadata for job in made.spec.replicated_jobs)
    assert leader is None
    assert workers is not None
    assert workers.annotations == {EXCLUSIVE: "rack"}
    assert not made.metadata.annotations
    assert check(made) == ()
    with pytest.raises(InvalidSpec, match=r"replicated_jobs: no replicated job of this name, 'worker' given"):
        with_presets(spec, gpus(1), replicated_jobs=["worker"])


def test_for_all_replicated_jobs_a_placement_is_the_jobsets() -> None:
    made = with_presets(train(), exclusive_placement("rack"))

    assert made.metadata.annotations == {EXCLUSIVE: "rack"}


def test_topology_requests_are_annotations_of_the_pods() -> None:
    made = with_presets(train(), kueue_topology("block", slice_level="rack", slice_size=2))

    annotations = {
        key: value for key, value in pod(made)["metadata"]["annotations"].items() if "kueue" in key
    }
    assert annotations == {
        "kueue.x-k8s.io/podset-required-topology": "block",
        "kueue.x-k8s.io/podset-slice-required-topology": "rack",
        "kueue.x-k8s.io/podset-slice-size": "2",
    }


def test_presets_go_into_a_template_too() -> None:
    template = train(nodes="{{inputs.parameters.n}}")

    made = with_presets(template, gpus(2), tpu_slice(Tpu("v6e", "2x2")))

    assert isinstance(made, SpecTemplate)
    assert made.check() == ()
    [hole] = made.holes
    assert container(made.bind({hole.name: 1}))["resources"]["limits"] == {
        "google.com/tpu": 4,
        "nvidia.com/gpu": 2,
    }


def test_presets_go_into_a_jobset_by_hand() -> None:
    by_hand = JobSet.from_dict(
        {
            "metadata": {"name": "train"},
            "spec": {
                "replicatedJobs": [
                    {
                        "name": "w",
                        "template": {
                            "spec": {"template": {"spec": {"containers": [{"name": "main", "image": "i"}]}}}
                        },
                    }
                ]
            },
        }
    )
    assert container(with_presets(by_hand, gpus(1)))["resources"] == {"limits": {"nvidia.com/gpu": 1}}


@pytest.mark.parametrize(
    ("version", "topology", "hosts", "chips"),
    [
        ("v4", "2x2x1", 1, 4),
        ("v4", "2x2x4", 4, 4),
        ("v4", "4x4x8", 32, 4),
        ("v5e", "1x1", 1, 1),
        ("v5e", "2x2", 1, 4),
        ("v5e", "4x4", 4, 4),
        ("v5e", "16x16", 64, 4),
        ("v5p", "2x4x4", 8, 4),
        ("v5p", "8x16x28", 896, 4),
        ("v6e", "1x1", 1, 1),
        ("v6e", "8x16", 32, 4),
        ("7x", "1x1x1", 1, 1),
        ("7x", "4x4x4", 16, 4),
        ("7x", "16x24x24", 2304, 4),
        ("tpu-v5-lite-podslice", "4x8", 8, 4),
        ("tpu7x", "2x2x2", 2, 4),
    ],
)
def test_hosts_and_chips_of_a_slice(version: str, topology: str, hosts: int, chips: int) -> None:
    tpu = Tpu(version, topology)

    assert (tpu.hosts, tpu.chips_per_host, tpu.chips) == (hosts, chips, hosts * chips)
    preset = tpu_slice(tpu)
    assert preset.limits == {"google.com/tpu": chips}
    assert preset.node_selector == {
        "cloud.google.com/gke-tpu-accelerator": TPU_VERSIONS[tpu.version].accelerator,
        "cloud.google.com/gke-tpu-topology": topology,
    }
    # Pods of one slice on two node pools could not talk over the chips' links.
    assert preset.placement == ({EXCLUSIVE: "cloud.google.com/gke-nodepool"} if hosts > 1 else {})


def test_a_host_of_eight_chips_is_one_slice_of_2x4() -> None:
    assert (Tpu("v5e", "2x4").hosts, Tpu("v5e", "2x4", 8).hosts) == (2, 1)
    with pytest.raises(InvalidSpec, match=r"tpu.chips_per_host: .* 8 given; 4 \[tpu-host\]"):
        Tpu("v6e", "4x4", 8)


@pytest.mark.parametrize(
    ("version", "topology", "said"),
    [
        ("v5", "4x4", r"tpu.version: is unknown, 'v5' given; did you mean v5"),
        ("v5e", "3x3", r"tpu.topology: v5e has no such slice, '3x3' given; one of 1x1, 2x2, 2x4"),
        ("v5e", "2x2x2", r"tpu.topology: v5e slices have 2 dimensions, '2x2x2' given"),
        ("v6e", "32x32", "v6e has no such slice"),
        ("v4", "4x4", r"v4 slices have 3 dimensions, '4x4' given; one of 2x2x1, .* such as 4x4x8"),
        ("v4", "4x4x2", r"sides in multiples of 4, the smallest first, '4x4x2' given; such as 2x4x4"),
        ("v5p", "8x4x4", r"'8x4x4' given; such as 4x4x8"),
        ("v5p", "6x6x6", r"'6x6x6' given; such as 8x8x8"),
        ("v4", "16x16x24", r"the largest v4 slice has 4096 chips, '16x16x24 = 6144' given"),
        ("7x", "4x4x", r"is written as chips by dimension, '4x4x' given"),
        ("v5e", 16, "is written as chips by dimension"),
        ("v5e", "04x4", "is written as chips by dimension"),
    ],
)
def test_a_topology_that_no_slice_has_is_refused_with_one_that_passes(
    version: str, topology: Any, said: str
) -> None:
    with pytest.raises(InvalidSpec, match=said):
        Tpu(version, topology)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: gpus(0), "count: is a whole number from 1 on"),
        (
            lambda: gke_gpus("nvidia-h100", 8),
            "accelerator: is not known, 'nvidia-h100' given; did you mean nvidia",
        ),
        (
            lambda: gke_gpus("nvidia-l4", 16),
            "count: no machine with nvidia-l4 has that many, 16 given; at most 8",
        ),
        (lambda: eks_gpus("p5.48xlarg"), "did you mean p5.48xlarge?"),
        (lambda: exclusive_placement("my zone"), "topology: is no label of a node"),
        (lambda: kueue_topology("rack", mode="maybe"), "mode: is unknown"),  # type: ignore[arg-type]
        (lambda: kueue_topology("rack", slice_size=2), "slice_level and slice_size go together"),
        (
            lambda: kueue_topology(None, slice_level="rack", slice_size=0),
            "slice_size: is a whole number of pods",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_would_pass(call: Any, said: str) -> None:
    with pytest.raises(InvalidSpec, match=said):
        call()
