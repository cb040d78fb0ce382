"""A few steps in which all ranks add up over MPI: checkpoints each step, resumes; one rank may be told to end."""

import argparse
import os
import sys

from mpi4py import MPI

from jobset_steps import worker

STEPS, EVENT_AT = 6, 3

parser = argparse.ArgumentParser()
parser.add_argument("--ends", type=int, help="this rank ends after step 3 of attempt 0")
parser.add_argument("--code", type=int, default=1, help="with this exit code")
parser.add_argument("--says", default="", help="a text that must arrive as it is")
options = parser.parse_args()

everybody, here = MPI.COMM_WORLD, worker.context()
rank, world = everybody.Get_rank(), everybody.Get_size()
assert here.is_leader == (rank == 0)
# In one write: the lines of all ranks end up in one log.
sys.stdout.write(
    f"rank {rank} of {world}, place {here.rank}.{here.local_rank}, says {options.says}\ntold {os.environ.get('TOLD')}\n"
)
checkpoints = worker.Checkpoints(keep=2)
newest = everybody.bcast(checkpoints.newest() if rank == 0 else None)
start, total = (newest.step, float(newest.path.read_text())) if newest else (0, 0.0)
print(f"begins at step {start}, attempt {here.attempt}", flush=True)
for step in range(start + 1, STEPS + 1):
    total += everybody.allreduce(rank + step)
    if rank == 0:
        checkpoints.save(step, lambda path, total=total: path.write_text(str(total)))
    everybody.Barrier()
    if here.attempt == 0 and step == EVENT_AT and rank == options.ends:
        print("ends now", flush=True)
        os._exit(options.code)
expected = sum(world * step + world * (world - 1) // 2 for step in range(1, STEPS + 1))
assert total == expected, (total, expected)
print(f"ends with step {STEPS}", flush=True)
worker.report_metrics({"steps": STEPS, "world": world, "resumed_from": start})
