"""How the two controllers write a condition into a list of conditions: added, changed or left as it is.

Both add a condition only while it is true; they differ in what they take for a change.
"""

from __future__ import annotations

from jobset_steps.observed import Condition

__all__ = ["job_condition", "jobset_condition"]

_EXCLUSIVE = {
    "StartupPolicyInProgress": "StartupPolicyCompleted",
    "StartupPolicyCompleted": "StartupPolicyInProgress",
}


def jobset_condition(conditions: tuple[Condition, ...], new: Condition) -> tuple[Condition, ...]:
    """As the JobSet controller does: the same object is returned where nothing changes.

    Only a change of status counts, a new reason does not. StartupPolicyInProgress and StartupPolicyCompleted exclude
    each other, and the loser keeps its reason and its time.
    """
    written, found, changed = [], False, False
    for old in conditions:
        if old.type == new.type:
            found = True
            if old.status != new.status:
                written.append(new)
                changed = True
                continue
        elif _EXCLUSIVE.get(old.type) == new.type and old.holds and new.holds:
            written.append(Condition(old.type, "False", old.reason, old.message, old.since))
            changed = True
            continue
        written.append(old)
    if not found and new.holds:
        written.append(new)
        changed = True
    return tuple(written) if changed else conditions


def job_condition(conditions: tuple[Condition, ...], new: Condition) -> tuple[Condition, ...]:
    """As the Job controller does: the same object is returned where nothing changes.

    A change of status, reason or message counts.
    """
    for number, old in enumerate(conditions):
        if old.type == new.type:
            if (old.status, old.reason, old.message) == (new.status, new.reason, new.message):
                return conditions
            return (*conditions[:number], new, *conditions[number + 1 :])
    return (*conditions, new) if new.status != "False" else conditions
