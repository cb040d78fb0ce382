"""`python -m jobset_steps.cli`."""

from jobset_steps.cli import console

console()
