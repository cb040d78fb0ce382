"""One process, one step: bind the values, run, write the outputs, end with the right exit code.

The launcher pod, the Kubeflow component and `jobset-steps run` all come through here. Nothing is started before every
fault of the input is known.
"""

from jobset_steps.launch.launch import LaunchRequest, launch, plan_of, process_exit_code
from jobset_steps.launch.places import PLACES, open_cluster
from jobset_steps.launch.pod import placed

__all__ = ["PLACES", "LaunchRequest", "launch", "open_cluster", "placed", "plan_of", "process_exit_code"]
