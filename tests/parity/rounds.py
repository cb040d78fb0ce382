"""Rounds of parity: specs that follow from a seed, both answers about each, and every disagreement in full."""

from __future__ import annotations

import json
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

from hypothesis import HealthCheck, Phase, given, seed, settings

from jobset_steps.clusters.kubernetes.client import Client
from jobset_steps.errors import ApiError
from tests.parity.answers import Answers, ask
from tests.parity.specs import Spec, specs

__all__ = ["disagreements", "many"]

_BATCH = 100


def many(count: int, first_seed: int) -> Iterator[Spec]:
    """`count` different specs that follow from the seed."""
    seen: set[str] = set()
    number = first_seed * 1_000_000
    while len(seen) < count:
        for spec in _two(number):
            text = json.dumps(spec.tree, sort_keys=True)
            if text not in seen and len(seen) < count:
                seen.add(text)
                yield spec
        number += 1


def _two(number: int) -> list[Spec]:
    """The simplest spec, and one at random. Longer runs spend most of their examples on variants of earlier ones."""
    found: list[Spec] = []

    @seed(number)
    @settings(
        max_examples=2,
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


def _patiently(client: Client, spec: Spec) -> Answers:
    """Both answers; a server that restarts is waited for. Raises ApiError when it stays away for five minutes."""
    for _ in range(150):
        try:
            return ask(client, spec.tree)
        except ApiError:
            time.sleep(2)
    return ask(client, spec.tree)


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
            answers: Answers | None = _patiently(client, spec)
            wrong = answers is not None and answers.disagree
            text = str(answers)
        except ApiError:
            # A round whose server is away proves nothing.
            raise
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
