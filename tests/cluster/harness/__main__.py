"""`python -m tests.cluster.harness build|up|down|status`."""

from __future__ import annotations

import argparse
import sys
import time

from tests.cluster.harness import machine
from tests.cluster.harness.machine import Missing
from tests.cluster.harness.session import test_cluster


def main() -> int:
    """Do what was asked; exit code 1 where this machine lacks something."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.harness", description=__doc__)
    parser.add_argument("what", choices=("build", "up", "down", "status"))
    parser.add_argument("--install", action="store_true", help="install missing Debian packages")
    options = parser.parse_args()
    try:
        if options.install:
            machine.install()
        if options.what in ("build", "up"):
            machine.require()
        cluster = test_cluster(build_first=options.what in ("build", "up"))
        began = time.monotonic()
        if options.what == "up":
            cluster.up()
            print(f"up after {time.monotonic() - began:.0f} s\nexport KUBECONFIG={cluster.kubeconfig}")
        elif options.what == "down":
            cluster.down()
        elif options.what == "status":
            print(f"running: KUBECONFIG={cluster.kubeconfig}" if cluster.running() else "not running")
    except Missing as error:
        print(error, file=sys.stderr)
        return 1
    return 0


sys.exit(main())
