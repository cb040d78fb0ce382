"""`jobset-steps sweep`: delete JobSets whose run is over and that no launcher is left to delete."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from jobset_steps.errors import BadInput

__all__ = ["sweep"]


def sweep(
    namespace: Annotated[
        str | None, typer.Option("-n", "--namespace", help="Default: the current one.")
    ] = None,
    all_namespaces: Annotated[
        bool, typer.Option("-A", "--all-namespaces", help="In every namespace.")
    ] = False,
    workflow: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of this Workflow alone, which is at its end (its exit handler)."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be deleted, delete nothing.")
    ] = False,
    kubeconfig: Annotated[
        str | None, typer.Option(help="Default: as kubectl, or the pod's own account.")
    ] = None,
) -> int:
    """Delete unfinished JobSets of steps whose Workflow has ended or gone. Exit code 1 if one could not be deleted."""
    from jobset_steps.clusters.kubernetes.client import Client
    from jobset_steps.clusters.kubernetes.sweep import sweep as swept

    if namespace and all_namespaces:
        raise BadInput("--namespace and --all-namespaces exclude each other")
    if workflow == "" or (workflow and all_namespaces):
        raise BadInput("--workflow names one Workflow of one namespace")
    client = Client(kubeconfig)
    failed = False
    where = None if all_namespaces else namespace or client.namespace
    for item in swept(client, where, time.time(), workflow=workflow or "", dry_run=dry_run):
        failed = failed or bool(item.error)
        done = f"NOT deleted: {item.error}" if item.error else "would be deleted" if dry_run else "deleted"
        print(f"{item.namespace}/{item.jobset}: {item.why or 'unknown'}: {done}")
    return 1 if failed else 0
