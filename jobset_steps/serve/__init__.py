"""The Argo executor plugin: one process that runs every plugin step of a Workflow. Its state is in the cluster alone."""

from jobset_steps.serve.process import serve

__all__ = ["serve"]
