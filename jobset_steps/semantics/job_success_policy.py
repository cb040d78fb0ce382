"""Whether an Indexed Job's successPolicy is met by the indexes that have succeeded, and by which rule."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jobset_steps.spec.job import JobSuccessPolicy

__all__ = ["matching_rule", "parse_indexes"]


def matching_rule(policy: JobSuccessPolicy | None, completions: int, succeeded: Set[int]) -> int | None:
    """The number of the first rule that is met, else None. Nothing is met before an index has succeeded."""
    if policy is None or not succeeded:
        return None
    for number, rule in enumerate(policy.rules):
        if rule.succeeded_indexes is not None:
            wanted = parse_indexes(rule.succeeded_indexes, completions)
            met = len(wanted & succeeded)
            if not wanted:
                continue
            if met == len(wanted) or (rule.succeeded_count is not None and met >= rule.succeeded_count):
                return number
        elif rule.succeeded_count is not None and len(succeeded) >= rule.succeeded_count:
            return number
    return None


def parse_indexes(text: str, completions: int) -> set[int]:
    """The indexes below `completions` of text such as "0,2-4". Parts that are not indexes are passed over."""
    indexes: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if first.isdecimal() and (last.isdecimal() if dash else True):
            indexes |= set(range(int(first), min(int(last) if dash else int(first), completions - 1) + 1))
    return indexes
