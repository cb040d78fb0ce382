"""`python -m jobset_steps.worker -- command arguments...`: see entry."""

import sys

from jobset_steps.worker.entry import main

sys.exit(main(sys.argv[1:]))
