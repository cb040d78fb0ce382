"""The training of retrain_xgboost.py: each pod trains on its shard, the leader saves a checkpoint after every round.

It runs in every pod of the JobSet, leader and workers alike. A set that is restarted resumes from the newest complete
checkpoint. Two switches let it fail, so that there is something to see.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import numpy
import xgboost
from xgboost import collective

from jobset_steps import worker

BAD_DATA = 65
"""An exit code that the failure policy knows as fatal: no restart mends the data."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="npz file with features, labels")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--crash-rank", type=int, default=-1, help="this rank crashes once, in attempt 0")
    parser.add_argument("--crash-at-round", type=int, default=0)
    parser.add_argument("--bad-data", choices=("true", "false"), default="false", help="fail for good")
    return parser.parse_args()


class EveryRound(xgboost.callback.TrainingCallback):
    """Saves a checkpoint after each round, tells of progress, and crashes where it was told to."""

    def __init__(self, options: argparse.Namespace, ending: worker.Termination) -> None:
        self._options, self._ending = options, ending
        self._checkpoints = worker.Checkpoints(keep=2)

    def after_iteration(self, model: xgboost.Booster, epoch: int, evals_log: dict) -> bool:
        """See xgboost; never ends the training early."""
        here, done = worker.context(), model.num_boosted_rounds()
        if here.is_leader:
            error = evals_log["train"]["merror"][-1]
            print(f"round {done}/{self._options.rounds}, training error {error:.4f}", flush=True)
            with self._ending.finishing():  # a SIGTERM waits until the checkpoint is whole
                self._checkpoints.save(done, lambda path: path.write_bytes(model.save_raw()))
        # Nobody is ahead of the checkpoint, so whoever crashes now loses no round.
        collective.allreduce(numpy.array([done]), collective.Op.MAX)
        if (
            here.attempt == 0
            and here.rank == self._options.crash_rank
            and done == self._options.crash_at_round
        ):
            print(f"rank {here.rank} crashes in round {done}", flush=True)
            os._exit(1)  # as a crash does: nothing is cleaned up
        time.sleep(0.05)  # a training that is worth watching takes longer than this one
        return False


def main() -> None:
    options, here = arguments(), worker.context()
    if options.bad_data == "true":
        print(f"rank {here.rank}: labels are missing in {options.data}", flush=True)
        sys.exit(BAD_DATA)
    with numpy.load(options.data) as data:
        features, labels = data["features"], data["labels"]
    shard = slice(here.rank, None, here.world_size)
    matrix = xgboost.DMatrix(features[shard], label=labels[shard])
    with worker.terminating() as ending, worker.xgboost_collective(timeout=60):
        # All ranks start from what the leader finds, whatever each of them sees of the file system.
        newest = worker.Checkpoints().newest() if here.is_leader else None
        model = collective.broadcast(newest.path.read_bytes() if newest else b"", 0)
        before = xgboost.Booster(model_file=bytearray(model)) if model else None
        done = before.num_boosted_rounds() if before else 0
        if done:
            print(f"resumed from round {done}", flush=True)
        result: dict = {}
        booster = xgboost.train(
            {
                "objective": "multi:softprob",
                "num_class": 10,
                "max_depth": 4,
                "eta": 0.4,
                "nthread": 1,
                "eval_metric": "merror",
            },
            matrix,
            options.rounds - done,
            evals=[(matrix, "train")],
            evals_result=result,
            xgb_model=before,
            verbose_eval=False,
            callbacks=[EveryRound(options, ending)],
        )
    if here.is_leader and here.model_uri:
        target = Path(here.model_uri)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(booster.save_raw(raw_format="json"))
        print(f"model of {booster.num_boosted_rounds()} rounds written", flush=True)
    worker.report_metrics(
        {"rounds": booster.num_boosted_rounds(), "resumed_from": done, "world_size": here.world_size}
    )


if __name__ == "__main__":
    main()
