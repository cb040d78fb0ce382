"""The rules that refuse what the API server would accept, each with what would come of it. Each can be waived by name.

Every other rule refuses what the server itself refuses, of the JobSet, of its claims, its child Jobs or their pods.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from jobset_steps.spec.fault import Fault

__all__ = ["WAIVABLE", "waive_faults"]

WAIVABLE: dict[str, str] = {
    "action-gate": "RestartJob and RestartJobAndIgnoreMaxRestarts need a feature gate of JobSet that is off by default; "
    "where it is off, JobSet refuses them.",
    "child-ttl": "A child Job that is deleted before the JobSet ends is made again, and runs again.",
    "claim-twice": "A pod with two volumes of one claim waits for ever for the second to be mounted.",
    "depends-on-self": "A replicated job that depends on itself never starts: no condition, no event.",
    "dropped-field": "The server drops the field without a word while its feature gate is off, as it is by default.",
    "job-name-empty": "A replicated job without a name cannot be a target, a coordinator or a dependency.",
    "manual-selector": "With a selector of one's own, an attempt takes the pods of the attempt before for its own.",
    "negative-grace": "A negative grace period acts as one second.",
    "negative-replicas": "A negative number of replicas acts as 0.",
    "negative-restarts": "A negative maxRestarts acts as 0.",
    "no-jobs": "Without a replicated job, or with no replica of any, the JobSet never ends.",
    "other-namespace": "A JobSet outside the Workflow's namespace has no owner: it outlives a Workflow that is deleted.",
    "pattern": "A pattern that is not RE2 never matches: the failure counts as a default restart.",
    "pod-computed": "The server computes priority, preemption and overhead from classes; where the template says "
    "another value, no pod is ever created.",
    "pod-host-name": "Host name and subdomain are JobSet's to set; with others pods do not find each other.",
    "success-of-nothing": "A success policy All whose targets have no replica completes at the first success of anything.",
    "ttl-too-short": "A finished JobSet can be gone before anybody has read how it ended.",
    "volume-without-source": "A volume without a source becomes an emptyDir: what is written there is lost with the pod.",
}


def waive_faults(waive: Iterable[str]) -> Iterator[Fault]:
    """Names to waive that no waivable rule has."""
    for name in waive:
        if name not in WAIVABLE:
            close = difflib.get_close_matches(name, WAIVABLE)
            passes = f"did you mean {close[0]}?" if close else f"one of {', '.join(WAIVABLE)}"
            yield Fault("waive", "unknown-rule", "no rule that can be waived has this name", name, passes)
