"""What recipes compile to, as a person would read it. `make golden` writes it anew."""

import json

from jobset_steps.recipes import Role, ddp, jax, leader_workers, mpi, torchrun, xgboost
from jobset_steps.recipes.presets import Tpu, eks_gpus, kueue_topology, with_presets
from jobset_steps.spec.jobset import FailurePolicy


def test_torchrun(golden):
    jobset = torchrun(
        "finetune",
        script="train.py",
        image="registry.example/train:1",
        nodes=4,
        nproc_per_node=8,
        args=["--data", "/data", "--lr", 3e-4],
        env={"NCCL_DEBUG": "WARN"},
        resources={"limits": {"nvidia.com/gpu": 8}},
        volumes={"/data": "pvc://corpus/2026", "/dev/shm": {"emptyDir": {"medium": "Memory"}}},
        checkpoints="pvc://checkpoints/finetune",
        failure_policy=FailurePolicy.resilient(max_restarts=3),
        queue="research",
        pod={"nodeSelector": {"accelerator": "a100"}},
    )
    golden("recipes/torchrun.yaml", jobset.to_yaml())


def test_ddp(golden):
    jobset = ddp(
        "finetune",
        module="finetune.train",
        image="registry.example/train:1",
        nodes=2,
        nproc_per_node=4,
        checkpoints="pvc://checkpoints/finetune",
        failure_policy=FailurePolicy.resilient(max_restarts=3),
    )
    golden("recipes/ddp.yaml", jobset.to_yaml())


def test_jax(golden):
    jobset = jax(
        "pretrain",
        module="pretrain.main",
        image="registry.example/jax:1",
        nodes=4,
        checkpoints="gs://models/checkpoints",
        failure_policy=FailurePolicy.spot(),
    )
    golden("recipes/jax.yaml", jobset.to_yaml())


def test_jax_on_tpu_slices(golden):
    jobset = jax(
        "pretrain",
        module="pretrain.main",
        image="registry.example/jax:1",
        tpu=Tpu("v5e", "4x4"),
        slices=2,
        failure_policy=FailurePolicy.resilient(max_restarts=5),
    )
    golden("recipes/jax-tpu.yaml", jobset.to_yaml())


def test_mpi(golden):
    jobset = mpi(
        "simulate",
        command=["./simulate", "--steps", 1000],
        image="registry.example/simulate:1",
        workers=4,
        slots_per_worker=8,
        mpirun_args=["--bind-to", "core"],
        resources={"requests": {"cpu": 8}},
        checkpoints="pvc://checkpoints/simulate",
        failure_policy=FailurePolicy.resilient(max_restarts=3),
    )
    golden("recipes/mpi.yaml", jobset.to_yaml())


def test_presets(golden):
    jobset = torchrun(
        "finetune",
        script="train.py",
        image="registry.example/train:1",
        nodes=4,
        nproc_per_node=8,
        resources={"requests": {"memory": "1Ti"}},
        queue="research",
    )
    jobset = with_presets(
        jobset, eks_gpus("p5.48xlarge"), kueue_topology("topology.k8s.aws/network-node-layer-3")
    )
    golden("recipes/presets.yaml", jobset.to_yaml())


def test_xgboost(golden):
    jobset = xgboost(
        "boost",
        module="boost.train",
        image="registry.example/boost:1",
        workers=3,
        checkpoints="s3://models/checkpoints",
        failure_policy=FailurePolicy.resilient(max_restarts=2),
    )
    golden("recipes/xgboost.yaml", jobset.to_yaml())


def test_leader_workers(golden):
    jobset = leader_workers(
        "rl",
        leader=Role(image="registry.example/driver:1", script="driver.py"),
        workers=Role(
            image="registry.example/actor:1",
            module="actors.run",
            container={"readinessProbe": {"tcpSocket": {"port": 7000}}},
        ),
        count=8,
        first="workers",
        succeeds_with="leader",
    )
    golden("recipes/leader-workers.yaml", jobset.to_yaml())


def test_a_template(golden):
    template = torchrun(
        "train",
        script="train.py",
        image="registry.example/train:1",
        nodes="{{tasks.plan.outputs.parameters.nodes}}",
        args=["--data", "{{tasks.prep.outputs.parameters.path}}"],
    )
    golden("recipes/template.json", json.dumps(json.loads(template.to_json()), indent=1) + "\n")
