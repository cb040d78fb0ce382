"""What a recipe was called with, before anything is made of it: an argument of the wrong kind is a fault that names it.

Only kinds are looked at here. What the values mean is for the rules of the spec; upstream outputs pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobset_steps.spec.fault import Fault, InvalidSpec
from jobset_steps.spec.jobset import FailurePolicy, VolumeClaimPolicy

__all__ = ["check_arguments"]


def check_arguments(
    *,
    lists: Mapping[str, Any],
    mappings: Mapping[str, Any],
    fatal_exit_codes: Any,
    failure_policy: Any,
    volume_claim_policies: Any,
) -> None:
    """Raises InvalidSpec with every argument of the wrong kind. `lists` and `mappings` are by name; None passes in both."""
    faults = [
        *(
            Fault(name, "list", "is a list of words, not one text", value, 'for instance ["--data", "/data"]')
            for name, value in lists.items()
            if value is not None and not _is_list(value)
        ),
        *(
            Fault(name, "type", "must be a mapping", value, 'for instance {"NAME": "value"}')
            for name, value in mappings.items()
            if value is not None and not isinstance(value, Mapping)
        ),
        *_codes(fatal_exit_codes),
    ]
    if failure_policy is not None and not isinstance(failure_policy, FailurePolicy):
        passes = "FailurePolicy(...), FailurePolicy.resilient(3), .spot(...) or .fail_fast()"
        faults.append(Fault("failure_policy", "type", "must be a FailurePolicy", failure_policy, passes))
    if not _is_list(volume_claim_policies) or not all(
        isinstance(policy, VolumeClaimPolicy) for policy in volume_claim_policies
    ):
        message = "must be a list of VolumeClaimPolicy"
        faults.append(Fault("volume_claim_policies", "type", message, volume_claim_policies))
    if faults:
        raise InvalidSpec(faults)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _codes(codes: Any) -> Iterator[Fault]:
    right = _is_list(codes) and all(type(code) is int and 1 <= code <= 255 for code in codes)
    if not right:
        yield Fault("fatal_exit_codes", "exit-codes", "is a list of numbers from 1 to 255", codes, "(2, 64)")
