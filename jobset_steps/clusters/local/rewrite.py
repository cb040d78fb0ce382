"""What a container's text names in the cluster, by what it is on this machine: hosts, ports, paths. Pure.

Only whole names are replaced: `train-workers-0-1` is not found in `train-workers-0-10`, `/mnt/data` not in
`/mnt/data2`. Nothing else of a text changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Hosts", "Rewrite", "hosts_of", "rendezvous_ports"]


@dataclass(frozen=True, slots=True)
class Hosts:
    """The host names that the pods of one JobSet have: replicated job -> (Jobs, pods a Job)."""

    jobset: str
    namespace: str
    subdomain: str
    shape: Mapping[str, tuple[int, int]]

    def pattern(self) -> re.Pattern[str]:
        """Matches a pod's host name, with as much of its domain as is there, as group 1 the host name."""
        # Longest first: of two replicated jobs one may be the beginning of the other.
        jobs = "|".join(re.escape(name) for name in sorted(self.shape, key=len, reverse=True)) or r"(?!)"
        domain = (
            re.escape(self.subdomain) + rf"(?:\.{re.escape(self.namespace)}(?:\.svc(?:\.cluster\.local)?)?)?"
        )
        # After it: neither more of a name nor more of a domain.
        return re.compile(
            rf"(?<![\w.-])({re.escape(self.jobset)}-(?:{jobs})-\d+-\d+)(?:\.{domain})?(?![\w-])(?!\.[A-Za-z0-9])"
        )

    def __contains__(self, host: object) -> bool:
        if not isinstance(host, str):
            return False
        name, job, pod = (host.removeprefix(f"{self.jobset}-")).rsplit("-", 2)
        jobs, pods = self.shape.get(name, (0, 0))
        return int(job) < jobs and int(pod) < pods and f"{int(job)}-{int(pod)}" == f"{job}-{pod}"


def hosts_of(manifest: Mapping[str, Any]) -> Hosts:
    """The hosts of a JobSet, from its manifest."""
    meta, spec = manifest["metadata"], manifest["spec"]
    shape = {}
    for replicated in spec.get("replicatedJobs") or ():
        job = replicated["template"].get("spec") or {}
        pods = max(int(job.get("completions") or 1), int(job.get("parallelism") or 1))
        replicas = replicated.get("replicas")
        shape[str(replicated["name"])] = (1 if replicas is None else int(replicas), pods)
    return Hosts(
        jobset=str(meta["name"]),
        namespace=str(meta.get("namespace") or "default"),
        subdomain=str((spec.get("network") or {}).get("subdomain") or meta["name"]),
        shape=shape,
    )


def rendezvous_ports(manifest: Mapping[str, Any]) -> tuple[int, ...]:
    """The numbers of all containerPorts named "rendezvous" in a JobSet, each once."""
    found = {
        int(port["containerPort"])
        for replicated in manifest["spec"].get("replicatedJobs") or ()
        for container in _pod_spec(replicated).get("containers") or ()
        for port in container.get("ports") or ()
        if port.get("name") == "rendezvous"
    }
    return tuple(sorted(found))


def _pod_spec(replicated: Mapping[str, Any]) -> Mapping[str, Any]:
    job = replicated["template"].get("spec") or {}
    spec: Mapping[str, Any] = (job.get("template") or {}).get("spec") or {}
    return spec


class Rewrite:
    """Rewrites the texts of one container.

    `address` gives the address of a pod's host name, `ports` the port drawn for each rendezvous port, `paths` the
    directory or file here for each path in the container.
    """

    def __init__(
        self,
        hosts: Hosts,
        address: Callable[[str], str],
        ports: Mapping[int, int],
        paths: Mapping[str, str],
    ) -> None:
        self._hosts, self._address, self._ports = hosts, address, ports
        self._paths = {path.rstrip("/"): here for path, here in paths.items() if path.rstrip("/")}
        self._host = hosts.pattern()
        numbers = "|".join(map(str, ports)) or r"(?!)"
        # "host:29500", or the value of an option whose name ends in "port".
        self._port = re.compile(rf"(:|(?i:port)=)({numbers})(?![\w.])")
        longest = "|".join(re.escape(path) for path in sorted(self._paths, key=len, reverse=True)) or r"(?!)"
        # Before it no more of a path, but for the slashes of a file URL; after it a slash or no more of a name.
        self._path = re.compile(rf"(?:(?<![\w./~-])|(?<=file://))({longest})(?=/|(?![\w.-]))")

    def __call__(self, text: str) -> str:
        """One environment value, or one word of the command line."""
        if text.isdigit() and int(text) in self._ports:
            return str(self._ports[int(text)])
        text = self._port.sub(lambda match: f"{match[1]}{self._ports[int(match[2])]}", text)
        text = self._host.sub(self._of_host, text)
        return self.path(text)

    def path(self, text: str) -> str:
        """Paths only."""
        return self._path.sub(lambda match: self._paths[match[1]], text)

    def _of_host(self, match: re.Match[str]) -> str:
        return self._address(match[1]) if match[1] in self._hosts else match[0]
