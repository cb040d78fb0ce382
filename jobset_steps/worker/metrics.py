"""Figures that the training hands to the pipeline, through the pod's termination message.

The kubelet keeps what a container writes to its termination log, at most 4096 bytes, also after a restart has
deleted the pod's logs. That is why metrics go there and not to the log.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from jobset_steps.errors import BadInput
from jobset_steps.worker.context import MissingEnvironment, context

__all__ = ["LIMIT", "report_metrics"]

LIMIT = 4096
"""Bytes of one container's termination message (Kubernetes, container termination messages)."""


def report_metrics(metrics: Mapping[str, Any]) -> bool:
    """Make `metrics` the step's metrics. Every process may call it; only the leader's are written (True returned).

    Values are numbers, texts, booleans, lists and dicts of these; NumPy and tensor scalars count as numbers. The last
    call counts. Raises BadInput where a value is not one of these or is not finite, where the JSON is longer than 4096
    bytes, and where the termination log cannot be written.
    """
    try:
        if not context().is_leader:
            return False
    except MissingEnvironment:
        pass  # a process outside a JobSet is its own leader
    text = _encode(metrics)
    path = os.environ.get("JOBSET_STEPS_TERMINATION_LOG") or "/dev/termination-log"
    try:
        # The kubelet mounts this very file, so it is written in place: a rename would put another one beside it.
        with open(path, "w", encoding="utf-8") as log:
            log.write(text)
    except OSError as error:
        raise BadInput(
            f"metrics: cannot write the termination log {path}: {error.strerror}; "
            "outside a pod set JOBSET_STEPS_TERMINATION_LOG to a file that can be written"
        ) from error
    return True


def _encode(metrics: Mapping[str, Any]) -> str:
    for name, value in metrics.items():
        if not isinstance(name, str):
            raise BadInput(f"metrics: names are texts, {name!r} given")
        try:
            json.dumps(value, default=_scalar, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise BadInput(f"metrics[{name!r}]: {value!r} cannot be written as JSON: {error}") from error
    text = json.dumps({"metrics": dict(metrics)}, default=_scalar, separators=(",", ":"), ensure_ascii=False)
    size = len(text.encode())
    if size > LIMIT:
        largest = max(metrics, key=lambda name: len(json.dumps(metrics[name], default=_scalar)))
        raise BadInput(
            f"metrics: at most {LIMIT} bytes as JSON (the termination message of a pod), {size} given; "
            f"the largest is {largest!r}: write long results to a file and report where it is"
        )
    return text


def _scalar(value: Any) -> Any:
    """The Python number in a NumPy or tensor scalar."""
    item = getattr(value, "item", None)
    if item is None:
        raise TypeError(f"a {type(value).__name__} is not a number, a text, a list or a dict")
    try:
        return item()
    except RuntimeError as error:  # a tensor with more than one element
        raise TypeError(str(error)) from error
