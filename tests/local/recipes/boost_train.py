"""A training of a few rounds over XGBoost's collective: checkpoints each round, resumes, may be told to crash once."""

import os
import sys

import numpy
import xgboost
from xgboost import collective

from jobset_steps import worker

ROUNDS, CRASH_AT = 6, 3
dies = int(sys.argv[sys.argv.index("--dies") + 1]) if "--dies" in sys.argv else None

here = worker.context()
random = numpy.random.default_rng(here.rank)
features = random.random((200, 4))
data = xgboost.DMatrix(features, label=(features[:, 0] > 0.5).astype(int))
checkpoints = worker.Checkpoints(keep=2)


class Each(xgboost.callback.TrainingCallback):
    """After each round: the leader saves; one rank may die in attempt 0."""

    def after_iteration(self, model, epoch, evals_log):
        done = model.num_boosted_rounds()
        if here.is_leader:
            with worker_ends.finishing():
                checkpoints.save(done, lambda path: path.write_bytes(model.save_raw()))
        collective.allreduce(numpy.array([done]), collective.Op.MAX)  # nobody is ahead of the checkpoint
        if here.rank == dies and here.attempt == 0 and done == CRASH_AT:
            print("dies now", flush=True)
            os._exit(1)
        return False


with worker.terminating() as worker_ends, worker.xgboost_collective(timeout=60) as rank:
    print(f"rank {rank} of {collective.get_world_size()}, place {here.rank}", flush=True)
    newest = checkpoints.newest() if rank == 0 else None
    model = collective.broadcast(newest.path.read_bytes() if newest else b"", 0)
    start = xgboost.Booster(model_file=bytearray(model)) if model else None
    done = start.num_boosted_rounds() if start else 0
    print(f"begins at round {done}, attempt {here.attempt}", flush=True)
    booster = xgboost.train(
        {"objective": "binary:logistic", "nthread": 1, "max_depth": 2},
        data,
        ROUNDS - done,
        xgb_model=start,
        callbacks=[Each()],
    )
    print(f"ends with {booster.num_boosted_rounds()} rounds", flush=True)
worker.report_metrics({"rounds": booster.num_boosted_rounds()})
