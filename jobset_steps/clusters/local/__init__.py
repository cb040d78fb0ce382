"""JobSets on this machine: each pod a process tree with an address of its own, under the shared controller loop.

`LocalCluster` is the Cluster; `cannot_run` and `cannot_give` say beforehand what this machine cannot give a JobSet.
"""

from jobset_steps.clusters.local.cluster import LocalCluster, default_root
from jobset_steps.clusters.local.limits import cannot_give, cannot_run

__all__ = ["LocalCluster", "cannot_give", "cannot_run", "default_root"]
