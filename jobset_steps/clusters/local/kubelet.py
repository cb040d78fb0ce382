"""Runs pods as process trees of this machine: the Kubelet of the local cluster.

It gives each pod its place (address, names, ports, directories), carries out what its PodRun orders, and reports what
becomes of it. It keeps no JobSet and decides nothing about restarts of one. Not thread-safe, never waits.
"""

from __future__ import annotations

import heapq
import queue
import shutil
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jobset_steps.clusters.controller import PodStart
from jobset_steps.clusters.local.logs import JOBSETS, last_bytes, log_tail_message
from jobset_steps.clusters.local.machine import Machine
from jobset_steps.clusters.local.network import Addresses, NoneLeft, Port, draw_port
from jobset_steps.clusters.local.plan import Place, PodPlan, plan_pod
from jobset_steps.clusters.local.pod_rules import Kill, Order, Run, Terminate
from jobset_steps.clusters.local.pods import PodRun
from jobset_steps.clusters.local.probes import Prober
from jobset_steps.clusters.local.processes import Exited, Processes, Started
from jobset_steps.clusters.local.rewrite import Hosts, hosts_of, rendezvous_ports
from jobset_steps.observed import PodView

__all__ = ["ProcessKubelet"]

_TERMINATION_MESSAGE = 4096


@dataclass(slots=True)
class _Attempt:
    """The names of one attempt of a JobSet. All pods of an attempt agree on them; the next one has new ones, so that
    stragglers and half-closed connections of this one reach nobody.
    """

    addresses: dict[str, str] = field(default_factory=dict)
    ports: dict[int, Port] = field(default_factory=dict)
    pods: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Home:
    """One JobSet: what its pods are called, and where the leader of each attempt writes."""

    hosts: Hosts
    ports: tuple[int, ...]
    attempts: dict[int, _Attempt] = field(default_factory=dict)
    leader_logs: list[Path] = field(default_factory=list)


@dataclass(slots=True)
class _Pod:
    start: PodStart
    plan: PodPlan
    run: PodRun
    reported: PodView
    due: float | None = None
    ids: dict[str, str] = field(default_factory=dict)
    log_starts: dict[str, int] = field(default_factory=dict)
    probers: dict[str, Prober] = field(default_factory=dict)


class ProcessKubelet:
    """`report` hears each change of a pod, also from within `start` and `stop`; `wake` is called, from any thread, when
    `receive` has something to do that no descriptor tells of. `now` gives POSIX seconds for a monotonic time.
    """

    def __init__(
        self,
        root: Path,
        machine: Machine,
        *,
        report: Callable[[PodView], None],
        wake: Callable[[], None],
        at: Callable[[float], float],
        now: Callable[[], float],
    ) -> None:
        self._root, self._machine = root, machine
        self._report, self._wake, self._at, self._now = report, wake, at, now
        self.processes = Processes()
        self._addresses = Addresses()
        self._homes: dict[str, _Home] = {}
        self._pods: dict[str, _Pod] = {}
        self._dues: list[tuple[float, str]] = []
        self._answers: deque[tuple[str, str, bool]] = deque()
        self._trash: queue.SimpleQueue[Path | None] = queue.SimpleQueue()
        self._cleaner = threading.Thread(target=self._clean, name="jobset-steps-clean", daemon=True)
        self._cleaner.start()

    # JobSets --------------------------------------------------------------------------------------------------------

    def expect(self, manifest: Mapping[str, Any]) -> None:
        """Pods of this JobSet will come."""
        hosts = hosts_of(manifest)
        self._homes[hosts.jobset] = _Home(hosts, rendezvous_ports(manifest))

    def forget(self, jobset: str) -> None:
        """No pod of this JobSet is left, and none will come."""
        home = self._homes.pop(jobset, None)
        for attempt in home.attempts.values() if home else ():
            self._release(attempt)

    def leader_logs(self, jobset: str) -> tuple[Path, ...]:
        """The logs of the leader's first container, one an attempt (or more, where its Job made a new pod)."""
        home = self._homes.get(jobset)
        return tuple(home.leader_logs) if home else ()

    # The Kubelet protocol -------------------------------------------------------------------------------------------

    def start(self, pod: PodStart) -> None:
        """Start it; if it cannot have a place here it is reported as failed, with the reason."""
        now = self._now()
        try:
            plan = plan_pod(pod.manifest, self._place(pod), self._machine)
            for directory in (plan.scratch, *plan.directories):
                directory.mkdir(parents=True, exist_ok=True)
        except (NoneLeft, OSError, ValueError) as error:
            self._report(
                replace(
                    pod.view, phase="Failed", reason="CreateContainerConfigError", message=str(error),
                    node=self._machine.node,
                )
            )  # fmt: skip
            return
        view = replace(pod.view, node=self._machine.node)
        held = _Pod(pod, plan, PodRun(view, plan.rules, now), view)
        self._pods[view.uid] = held
        self._attempt(pod).pods.add(view.uid)
        self._note_leader(pod, plan)
        self._carry_out(held, held.run.begin(now))

    def stop(self, uid: str, grace: float) -> None:
        """SIGTERM now, SIGKILL after `grace` seconds."""
        if (pod := self._pods.get(uid)) is not None:
            self._carry_out(pod, pod.run.stop(grace, self._now()))

    # The loop around it ---------------------------------------------------------------------------------------------

    def receive(self) -> None:
        """Take in what the guardian and the probes said."""
        for event in self.processes.receive():
            uid, container, _ = event.id.split("/")
            pod = self._pods.get(uid)
            if pod is None:
                continue
            if isinstance(event, Started):
                self._on_started(pod, container, event)
            elif event.lost:
                pod.run.lost(event.error, self._now())
                self._carry_out(pod, [])
            else:
                self._on_exited(pod, container, event)
        while self._answers:
            uid, container, ready = self._answers.popleft()
            if (pod := self._pods.get(uid)) is not None and container in pod.probers:
                pod.run.probed(container, ready, self._now())
                self._carry_out(pod, [])

    def tick(self) -> None:
        """Do what is due."""
        now = self._now()
        while (due := self.next_due()) is not None and due <= now:
            pod = self._pods[self._dues[0][1]]
            self._carry_out(pod, pod.run.tick(now))

    def next_due(self) -> float | None:
        """When `tick` has something to do, None if only an event has."""
        while self._dues:
            due, uid = self._dues[0]
            pod = self._pods.get(uid)
            if pod is not None and pod.run.next_due == due:
                return due
            heapq.heappop(self._dues)
        return None

    @property
    def busy(self) -> bool:
        """Whether any pod runs."""
        return bool(self._pods)

    def stop_all(self, at_most: float) -> None:
        """Stop every pod, each with its own grace, but none with more than `at_most` seconds."""
        for uid, pod in list(self._pods.items()):
            self.stop(uid, min(pod.plan.rules.grace, at_most))

    def close(self) -> None:
        """End what runs, at once, and give back all it had."""
        self.processes.close()
        for pod in self._pods.values():
            for prober in pod.probers.values():
                prober.close()
            self._trash.put(pod.plan.scratch)
        self._pods.clear()
        for jobset in list(self._homes):
            self.forget(jobset)
        self._addresses.close()
        self._trash.put(None)
        self._cleaner.join()

    # One pod --------------------------------------------------------------------------------------------------------

    def _place(self, pod: PodStart) -> Place:
        home, attempt = self._homes[pod.jobset], self._attempt(pod)
        host = str(pod.manifest["spec"].get("hostname") or pod.view.name)

        def address_of(name: str) -> str:
            if name not in attempt.addresses:
                attempt.addresses[name] = self._addresses.take()
            return attempt.addresses[name]

        base = self._root / JOBSETS / pod.jobset
        return Place(
            address=address_of(host),
            hosts=home.hosts,
            address_of=address_of,
            ports={stated: port.number for stated, port in attempt.ports.items()},
            scratch=base / "pods" / pod.view.uid,
            volumes=self._root / "volumes",
            logs=base / "logs" / f"attempt-{pod.view.attempt}",
        )

    def _attempt(self, pod: PodStart) -> _Attempt:
        home, number = self._homes[pod.jobset], pod.view.attempt
        if number not in home.attempts:
            for old in [n for n, attempt in home.attempts.items() if n < number and not attempt.pods]:
                self._release(home.attempts.pop(old))
            attempt = home.attempts[number] = _Attempt()
            attempt.ports.update((stated, draw_port()) for stated in home.ports)
        return home.attempts[number]

    def _release(self, attempt: _Attempt) -> None:
        for address in attempt.addresses.values():
            self._addresses.give_back(address)
        for port in attempt.ports.values():
            port.close()

    def _note_leader(self, pod: PodStart, plan: PodPlan) -> None:
        home = self._homes[pod.jobset]
        first = next(iter(home.hosts.shape), "")
        view = pod.view
        if (view.replicated_job, view.job_index, view.index) == (first, 0, 0):
            main = next(rule.name for rule in plan.rules.containers if not rule.init)
            home.leader_logs.append(plan.containers[main].command.log)
            home.leader_logs[-1].parent.mkdir(parents=True, exist_ok=True)

    def _carry_out(self, pod: _Pod, orders: list[Order]) -> None:
        uid = pod.start.view.uid
        todo = deque(orders)
        while todo:
            match todo.popleft():
                case Run(container, number):
                    pod.ids[container] = f"{uid}/{container}/{number}"
                    try:
                        self._run(pod, container)
                    except OSError as error:
                        todo += pod.run.exited(container, 128, None, self._now(), failure=str(error))
                case Terminate(container):
                    self.processes.terminate(pod.ids[container])
                case Kill(container):
                    self.processes.kill(pod.ids[container])
        if pod.run.finished:
            self._pods.pop(uid, None)
            self._attempt(pod.start).pods.discard(uid)
            for prober in pod.probers.values():
                prober.close()
            self._trash.put(pod.plan.scratch)
        due = pod.run.next_due
        if due is not None and due != pod.due:
            heapq.heappush(self._dues, (due, uid))
        pod.due = due
        if pod.run.view != pod.reported:
            pod.reported = pod.run.view
            self._report(pod.reported)

    def _run(self, pod: _Pod, container: str) -> None:
        plan = pod.plan.containers[container]
        log = plan.command.log
        log.parent.mkdir(parents=True, exist_ok=True)
        pod.log_starts[container] = log.stat().st_size if log.exists() else 0
        plan.termination_log.unlink(missing_ok=True)
        self.processes.start(pod.ids[container], plan.command)

    def _on_started(self, pod: _Pod, container: str, event: Started) -> None:
        if (probe := pod.plan.containers[container].readiness) is not None:
            uid = pod.start.view.uid

            def answered(ready: bool) -> None:
                self._answers.append((uid, container, ready))
                self._wake()

            pod.probers[container] = Prober(probe, answered)
        self._carry_out(pod, pod.run.started(container, self._at(event.at)))

    def _on_exited(self, pod: _Pod, container: str, event: Exited) -> None:
        if (prober := pod.probers.pop(container, None)) is not None:
            prober.close()
        plan = pod.plan.containers[container]
        message = last_bytes(plan.termination_log, _TERMINATION_MESSAGE)
        if not message and event.code != 0 and plan.falls_back_to_logs:
            message = log_tail_message(plan.command.log, pod.log_starts[container])
        orders = pod.run.exited(
            container, event.code, event.signal, self._at(event.at), message=message, failure=event.error
        )
        self._carry_out(pod, orders)

    def _clean(self) -> None:
        # A pod's directories may be large: removing them is nobody's to wait for.
        while (path := self._trash.get()) is not None:
            shutil.rmtree(path, ignore_errors=True)
