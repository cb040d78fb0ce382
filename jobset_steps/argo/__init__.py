"""A JobSet as a step of an Argo workflow: plain templates, whole documents, and (in `argo.hera`) a step for Hera.

Authoring compiles and nothing else: it imports neither what starts something nor, but for `argo.hera`, Hera.
"""

from jobset_steps.argo.exit_handler import exit_templates
from jobset_steps.argo.step import IMAGE, ArgoStep, Mode, argo_step
from jobset_steps.argo.workflow import Kind, document, template, to_yaml

__all__ = [
    "IMAGE",
    "ArgoStep",
    "Kind",
    "Mode",
    "argo_step",
    "document",
    "exit_templates",
    "template",
    "to_yaml",
]
