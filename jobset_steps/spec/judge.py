"""What every way in asks of a spec: all that can be said now, and the rest once its values are there.

Authoring, the command line and the launchers all ask here, so that a fault reads the same wherever it is met.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobset_steps.spec.check import check
from jobset_steps.spec.defaults import with_defaults
from jobset_steps.spec.fault import Fault, InvalidSpec
from jobset_steps.spec.jobset import JobSet
from jobset_steps.spec.template import SpecTemplate
from jobset_steps.spec.versions import DEFAULT_VERSION

__all__ = ["faults_now", "settle"]


def faults_now(
    spec: JobSet | SpecTemplate,
    *,
    waive: tuple[str, ...] = (),
    jobset_version: str = DEFAULT_VERSION,
    as_is: bool = False,
) -> tuple[Fault, ...]:
    """Every fault that can be known without values; `as_is` judges without our defaults, as kubectl would send it."""
    if isinstance(spec, SpecTemplate):
        return spec.check(waive=waive, jobset_version=jobset_version, as_is=as_is)
    return check(spec if as_is else with_defaults(spec), waive=waive, jobset_version=jobset_version)


def settle(
    spec: JobSet | SpecTemplate,
    values: Mapping[str, Any],
    *,
    waive: tuple[str, ...] = (),
    jobset_version: str = DEFAULT_VERSION,
    as_is: bool = False,
) -> JobSet:
    """The author's JobSet with its values, without defaults. Raises InvalidSpec with every fault of values and spec."""
    if isinstance(spec, JobSet):
        if values:
            message, passes = "the spec has no hole to take a value", "remove it"
            raise InvalidSpec(Fault(name, "unknown-value", message, passes=passes) for name in values)
        jobset = spec
    else:
        jobset = spec.bind(values)
    if faults := faults_now(jobset, waive=waive, jobset_version=jobset_version, as_is=as_is):
        raise InvalidSpec(spec.told(faults) if isinstance(spec, SpecTemplate) else faults)
    return jobset
