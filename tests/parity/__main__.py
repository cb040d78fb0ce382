"""`python -m tests.parity --specs N [--seed S]`: N specs, both answers, every disagreement printed; exit 1 if there is one.

Asks the cluster of --kubeconfig, of $JOBSET_STEPS_KUBECONFIG, or the usual one; everything is a dry run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

from hypothesis import HealthCheck, Phase, given, seed, settings

from jobset_steps.clusters.kubernetes.client import Client
from tests.parity.answers import Answers, ask
from tests.parity.specs import Spec, specs

__all__ = ["disagreements", "main", "many"]

_BATCH = 100


def many(count: int, first_seed: int) -> Iterator[Spec]:
    """`count` different specs that follow from the seed."""
    seen: set[str] = set()
    number = first_seed * 1_000_000
    while len(seen) < count:
        for spec in _batch(number):
            text = json.dumps(spec.tree, sort_keys=True)
            if text not in seen and len(seen) < count:
                seen.add(text)
                yield spec
        number += 1


def _batch(number: int) -> list[Spec]:
    found: list[Spec] = []

    @seed(number)
    @settings(
        max_examples=_BATCH,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(specs())
    def collect(spec: Spec) -> None:
        found.append(spec)

    collect()
    return found


def disagreements(
    client: Client, count: int, first_seed: int, *, threads: int = 6, progress: int = 0
) -> list[str]:
    """Every disagreement among `count` specs, as text that tells the whole of it."""
    found: list[str] = []
    refused = asked = 0
    lock = threading.Lock()

    def one(spec: Spec) -> None:
        nonlocal refused, asked
        try:
            answers: Answers | None = ask(client, spec.tree)
            wrong = answers is not None and answers.disagree
            text = str(answers)
        except Exception:
            answers, wrong, text = None, True, traceback.format_exc()
        with lock:
            asked += 1
            refused += answers is not None and answers.refusal is not None
            if wrong:
                found.append(
                    "\n".join([f"moved: {'; '.join(spec.moves)}", text, f"  spec: {json.dumps(spec.tree)}"])
                )
                if progress:
                    print(found[-1], flush=True)
            if progress and asked % progress == 0:
                print(
                    f"{asked:,} specs, {refused:,} refused by the server, {len(found)} disagreements",
                    flush=True,
                )

    with ThreadPoolExecutor(threads) as pool:
        todo, before = many(count, first_seed), list[Future[None]]()
        while batch := list(islice(todo, _BATCH)):
            # While the server answers about one batch, the next one is built.
            for future in before:
                future.result()
            before = [pool.submit(one, spec) for spec in batch]
    return found


def main() -> int:
    """Run and print; 1 if anything disagrees."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity", description=__doc__)
    parser.add_argument("--specs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kubeconfig", default=os.environ.get("JOBSET_STEPS_KUBECONFIG"))
    arguments = parser.parse_args()
    found = disagreements(Client(arguments.kubeconfig), arguments.specs, arguments.seed, progress=500)
    print(f"{arguments.specs:,} specs, {len(found):,} disagreements")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
