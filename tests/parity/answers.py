"""Both answers about one spec, and where they disagree.

We may refuse what the server accepts only by a fault that can be waived: it would hang or mislead there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jobset_steps.clusters.kubernetes.client import Client
from jobset_steps.spec.check import check
from jobset_steps.spec.fault import Fault, InvalidSpec
from jobset_steps.spec.jobset import JobSet
from tests.parity.server import refusal

__all__ = ["Answers", "ask"]


@dataclass(frozen=True)
class Answers:
    """`faults` are ours, `refusal` is the server's; `manifest` is what the server was asked about."""

    manifest: Mapping[str, Any]
    faults: tuple[Fault, ...]
    refusal: str | None

    @property
    def disagree(self) -> bool:
        """Whether one refuses for good what the other accepts."""
        ours = any(not fault.waivable for fault in self.faults)
        return ours != (self.refusal is not None)

    def __str__(self) -> str:
        ours = "\n".join(f"    {fault}" for fault in self.faults) or "    accepted"
        return f"  ours:\n{ours}\n  server:\n    {self.refusal or 'accepted'}"


def ask(client: Client, tree: Mapping[str, Any]) -> Answers:
    """Ask both. The server is asked about what a step would send: the tree as a JobSet writes it, or, where its shape is
    refused, the tree itself.
    """
    manifest: Mapping[str, Any] = tree
    try:
        jobset = JobSet.from_dict(tree)
    except InvalidSpec as error:
        faults = error.faults
    else:
        faults, manifest = check(jobset), jobset.to_dict()
    return Answers(manifest, faults, refusal(client, manifest))
