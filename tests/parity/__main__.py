"""`python -m tests.parity --specs N [--seed S]`: N specs, both answers, every disagreement printed; exit 1 if there is one.

Asks the cluster of --kubeconfig, of $JOBSET_STEPS_KUBECONFIG, or the usual one; everything is a dry run.
"""

from __future__ import annotations

import argparse
import os
import sys

from jobset_steps.clusters.kubernetes.client import Client
from tests.parity.rounds import disagreements

__all__ = ["main"]


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
