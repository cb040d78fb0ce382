"""`jobset-steps serve`: the Argo executor plugin, as a container beside Argo's agent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jobset_steps.errors import BadInput

__all__ = ["serve"]


def serve(
    port: Annotated[int, typer.Option(help="Where Argo's agent calls.", min=1, max=65535)] = 4355,
    token_file: Annotated[Path, typer.Option(help="Argo's token, as Argo mounts it.")] = Path(
        "/var/run/argo/token"
    ),
    kubeconfig: Annotated[str | None, typer.Option(help="Default: the pod's own account.")] = None,
) -> int:
    """Serve the plugin steps of Argo workflows until told to end."""
    try:
        from jobset_steps.serve import serve as run
    except ImportError as error:
        raise BadInput(
            f"serve needs the extra `plugin`: pip install 'jobset-steps[plugin]' ({error})"
        ) from error
    return run(port=port, token_file=token_file, kubeconfig=kubeconfig)
