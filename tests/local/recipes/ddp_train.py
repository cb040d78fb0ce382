"""A few steps of DistributedDataParallel over gloo: checkpoints each step, resumes; one rank may be told to end or to hang."""

import argparse
import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from jobset_steps import worker

STEPS, EVENT_AT = 6, 3

parser = argparse.ArgumentParser()
parser.add_argument("--ends", type=int, help="this rank ends after step 3 of attempt 0")
parser.add_argument("--code", type=int, default=1, help="with this exit code")
parser.add_argument("--hangs", type=int, help="this rank does nothing more then")
options = parser.parse_args()

dist.init_process_group("gloo", timeout=timedelta(seconds=60))
rank, world, here = dist.get_rank(), dist.get_world_size(), worker.context()
names = ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "WORLD_SIZE", "GROUP_RANK")
print("env " + " ".join(os.environ[name] for name in names) + f" pod {here.index}", flush=True)
assert here.is_leader == (rank == 0)
torch.manual_seed(1)
model = torch.nn.Linear(4, 1)
checkpoints = worker.Checkpoints(keep=2)
found = [checkpoints.newest() if rank == 0 else None]
dist.broadcast_object_list(found, src=0)
done = 0
if found[0] is not None:
    done = found[0].step
    model.load_state_dict(torch.load(found[0].path))
start = done
print(f"begins at step {done}, attempt {here.attempt}", flush=True)
replica = DistributedDataParallel(model)
optimizer = torch.optim.SGD(replica.parameters(), lr=0.1)
with worker.terminating() as ending:
    for step in range(done + 1, STEPS + 1):
        draw = torch.Generator().manual_seed(step * world + rank)
        features = torch.rand((16, 4), generator=draw)
        optimizer.zero_grad()
        ((replica(features) - features.sum(1, keepdim=True)) ** 2).mean().backward()
        optimizer.step()
        if rank == 0:
            with ending.finishing():
                checkpoints.save(step, lambda path: torch.save(model.state_dict(), path))
        dist.barrier()
        if here.attempt == 0 and step == EVENT_AT:
            if rank == options.hangs:
                print("hangs now", flush=True)
                time.sleep(600)
            if rank == options.ends:
                print("ends now", flush=True)
                os._exit(options.code)
same = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
all_of_them = [torch.zeros_like(same) for _ in range(world)]
dist.all_gather(all_of_them, same)
assert all(torch.equal(one, same) for one in all_of_them)
print(f"ends with step {STEPS}", flush=True)
worker.report_metrics({"steps": STEPS, "world": world, "resumed_from": start})
dist.barrier()
dist.destroy_process_group()
