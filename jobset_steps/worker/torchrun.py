"""torchrun, but with the exit code of the process that failed first.

torchrun itself ends with 1 whatever its processes end with, so a failure policy could not tell a fatal exit code from a
crash. Recipes put this very file into the pod, in torchrun's place; it takes torchrun's arguments.
"""

from __future__ import annotations

import sys


def main(arguments: list[str]) -> int:
    """Run torchrun; returns the exit code of the first process that failed, 128 + its signal where one ended it."""
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import main as torchrun

    try:
        torchrun(arguments)
    except ChildFailedError as error:
        print(error, file=sys.stderr, flush=True)
        code = int(error.get_first_failure()[1].exitcode)
        return code if code >= 0 else 128 - code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
