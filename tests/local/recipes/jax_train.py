"""A few steps of data-parallel JAX over all processes: checkpoints each step, resumes; one process may be told to end."""

import argparse
import os

parser = argparse.ArgumentParser()
parser.add_argument("--ends", type=int, help="this process ends after step 3 of attempt 0")
parser.add_argument("--code", type=int, default=1, help="with this exit code")
parser.add_argument("--plain", action="store_true", help="join by JAX's own call alone")
options = parser.parse_args()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy  # noqa: E402
from jax.experimental import multihost_utils  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec  # noqa: E402

from jobset_steps import worker  # noqa: E402

STEPS, EVENT_AT = 6, 3

jax.config.update("jax_cpu_collectives_implementation", "gloo")
if options.plain:
    jax.distributed.initialize(
        num_processes=int(os.environ["JAX_NUM_PROCESSES"]), process_id=int(os.environ["JAX_PROCESS_ID"])
    )
else:
    worker.jax_distributed(timeout=60)
here = worker.context()
print(
    f"process {jax.process_index()} of {jax.process_count()}, {jax.device_count()} devices, place {here.rank}",
    flush=True,
)
checkpoints = worker.Checkpoints(keep=2)
newest = checkpoints.newest() if here.is_leader else None
saved = numpy.load(newest.path) if newest else numpy.zeros(4)
weights, start = multihost_utils.broadcast_one_to_all((saved, numpy.array(newest.step if newest else 0)))
start = done = int(start)
print(f"begins at step {done}, attempt {here.attempt}", flush=True)
mesh = jax.make_mesh((jax.device_count(),), ("data",))
split, whole = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())
random = numpy.random.default_rng(here.rank)
mine = random.random((16, 4))
features = jax.make_array_from_process_local_data(split, mine)
labels = jax.make_array_from_process_local_data(split, mine.sum(1))
weights = jax.device_put(weights, whole)


@jax.jit
def step_of(weights, features, labels):
    """One step down the gradient of the mean over the data of all processes."""
    loss = lambda weights: jnp.mean((features @ weights - labels) ** 2)  # noqa: E731
    return weights - 0.1 * jax.grad(loss)(weights)


with worker.terminating() as ending:
    for step in range(done + 1, STEPS + 1):
        weights = step_of(weights, features, labels)
        local = numpy.asarray(weights.addressable_data(0))
        if here.is_leader:
            with ending.finishing():
                checkpoints.save(step, lambda path, local=local: numpy.save(path.open("wb"), local))
        multihost_utils.sync_global_devices(f"step {step}")
        if here.attempt == 0 and step == EVENT_AT and here.rank == options.ends:
            print("ends now", flush=True)
            os._exit(options.code)
everybodys = multihost_utils.process_allgather(numpy.asarray(weights.addressable_data(0)))
assert (everybodys == everybodys[0]).all()
print(f"ends with step {STEPS}", flush=True)
worker.report_metrics({"steps": STEPS, "world": jax.process_count(), "resumed_from": start})
jax.distributed.shutdown()
