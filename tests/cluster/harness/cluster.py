"""Starts the parts of the test cluster in their order, waits until each answers, and ends them again.

Every process is started here, its id is written down, and only those ids are ever signalled. All addresses are this
machine's own: the service addresses stand on the loopback device, pods are on a bridge.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from jobset_steps.clusters.kubernetes.client import Client
from jobset_steps.errors import ApiError
from tests.cluster.harness import addons, images
from tests.cluster.harness.machine import Missing
from tests.cluster.harness.pki import Authority, write_key_pair

__all__ = ["NODE", "TestCluster"]

NODE = "testbed"
_API, _DNS = "10.96.0.1", "10.96.0.10"
_SERVICES, _PODS, _BRIDGE = "10.96.0.0/16", "10.88.0.0/16", "testbed0"
_ETCD = "http://127.0.0.1:22479"
# The last started ends first: workloads before the node, the node before the control plane.
_ORDER = (
    "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "containerd", "kubelet", "coredns",
    "jobset-controller", "kueue", "workflow-controller",
)  # fmt: skip


class TestCluster:
    """The test cluster whose state is in `state`; binaries are in `bin_`. One at a time on a machine."""

    __test__ = False  # not a test, whatever its name begins with

    def __init__(self, state: Path, bin_: Path, project: Path) -> None:
        self.state, self._bin, self._project = state, bin_, project
        self.kubeconfig = state / "admin.kubeconfig"
        self._client: Client | None = None

    @property
    def client(self) -> Client:
        """A client of the administrator."""
        if self._client is None:
            self._client = Client(str(self.kubeconfig))
        return self._client

    def running(self) -> bool:
        """Whether every part that was started is alive and the API answers."""
        pids = [self._pid(name) for name in _ORDER]
        return all(pid is not None and _alive(pid) for pid in pids) and self._ready()

    def up(self) -> None:
        """Start everything, or nothing if it runs already. Raises Missing with a part's log where it does not come up."""
        if self.running():
            self._import_images()  # the project may have changed since
            return
        self.down()
        for folder in ("pki", "log", "run"):
            (self.state / folder).mkdir(parents=True, exist_ok=True)
        self._addresses()
        self._certificates()
        self._control_plane()
        self._node()
        self._dns()
        addons.jobset(self)
        addons.kueue(self)
        addons.argo(self)
        self.wait("the node", lambda: _condition(self.get(f"/api/v1/nodes/{NODE}"), "Ready"))
        self.wait(
            "the default service account",
            lambda: bool(self.get("/api/v1/namespaces/default/serviceaccounts/default")),
        )

    def down(self) -> None:
        """End every process that `up` started, and take back its mounts and addresses."""
        for name in reversed(_ORDER):
            if name == "containerd":
                self._end_containers()
            self._stop(name)
        self._unmount()
        for address in (_API, _DNS):
            _quiet("ip", "addr", "del", f"{address}/32", "dev", "lo")
        _quiet("ip", "link", "del", _BRIDGE)
        for folder in ("etcd", "run", "kubelet", "containerd-run", "pki"):
            shutil.rmtree(self.state / folder, ignore_errors=True)

    # What the add-ons use ---------------------------------------------------------------------------------------

    def start(self, name: str, *arguments: str, env: dict[str, str] | None = None, program: str = "") -> None:
        """Start a part in the background; its output goes to log/NAME."""
        executable = program or str(self._bin / name)
        with (self.state / "log" / name).open("wb") as log:
            process = subprocess.Popen(
                [executable, *arguments],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                cwd=self.state,
                env={**os.environ, **(env or {})},
            )
        (self.state / "run" / name).write_text(str(process.pid))

    def wait(self, what: str, ready: Callable[[], bool], *, log: str = "", seconds: float = 90.0) -> None:
        """Look every quarter of a second until it is ready. Raises Missing with the end of a log."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            # A part that has ended (a port that is taken, say) must not be waited for, nor another's taken for it.
            for name in _ORDER:
                if (pid := self._pid(name)) is not None and not _alive(pid):
                    raise Missing(f"{name} has ended; the end of its log:\n{self._log(name)}")
            if ready():
                return
            time.sleep(0.25)
        raise Missing(f"{what} did not come up within {seconds:.0f} s\n{self._log(log) if log else ''}")

    def _log(self, name: str) -> str:
        return (self.state / "log" / name).read_text(errors="replace")[-3000:]

    def answers(self, url: str) -> bool:
        """Whether a server of this machine answers at all."""
        context = ssl._create_unverified_context()
        try:
            urllib.request.urlopen(url, timeout=2, context=context)
        except urllib.error.HTTPError:
            return True
        except (urllib.error.URLError, OSError):
            return False
        return True

    def get(self, path: str) -> dict[str, Any]:
        """An object of the API, {} where there is none yet."""
        try:
            return self.client.call("GET", path)
        except ApiError:
            return {}

    def create(self, path: str, item: dict[str, Any]) -> None:
        """Create an object in a collection; one that is there already stays as it is."""
        try:
            self.client.call("POST", path, body=item)
        except ApiError as error:
            if error.kind != "exists":
                raise

    def pki(self, name: str) -> str:
        """The path of a certificate or key."""
        return str(self.state / "pki" / name)

    def ca_bundle(self) -> str:
        """The authority's certificate as webhooks want it."""
        import base64

        return base64.b64encode((self.state / "pki" / "ca.crt").read_bytes()).decode()

    # Steps of `up` ------------------------------------------------------------------------------------------------

    def _addresses(self) -> None:
        for address in (_API, _DNS):
            _quiet("ip", "addr", "add", f"{address}/32", "dev", "lo")
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")

    def _certificates(self) -> None:
        pki = self.state / "pki"
        authority = Authority(pki)
        write_key_pair(pki / "sa.key", pki / "sa.pub")
        names = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "127.0.0.1", _API)
        authority.issue("apiserver", "kube-apiserver", hosts=names)
        authority.issue("webhook", "webhook", hosts=("localhost", "127.0.0.1"))
        for name, user, group in (
            ("admin", "admin", "system:masters"),
            ("kube-controller-manager", "system:kube-controller-manager", ""),
            ("kube-scheduler", "system:kube-scheduler", ""),
            ("kubelet", f"system:node:{NODE}", "system:nodes"),
        ):
            authority.issue(name, user, group, hosts=(NODE, "127.0.0.1") if name == "kubelet" else ())
            self._write_kubeconfig(name)

    def _write_kubeconfig(self, name: str) -> None:
        server = {"server": f"https://{_API}:443", "certificate-authority": self.pki("ca.crt")}
        user = {"client-certificate": self.pki(f"{name}.crt"), "client-key": self.pki(f"{name}.key")}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "testbed", "cluster": server}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": name}}],
            "current-context": "testbed",
        }
        (self.state / f"{name}.kubeconfig").write_text(yaml.safe_dump(config))

    def _control_plane(self) -> None:
        pki = self.pki
        self.start(
            "etcd", "--data-dir", str(self.state / "etcd"), "--listen-client-urls", _ETCD, "--advertise-client-urls", _ETCD,
            "--listen-peer-urls", "http://127.0.0.1:22480", "--unsafe-no-fsync",
        )  # fmt: skip
        self.start(
            "kube-apiserver", f"--etcd-servers={_ETCD}", "--secure-port=443", f"--bind-address={_API}",
            f"--advertise-address={_API}", f"--service-cluster-ip-range={_SERVICES}", f"--client-ca-file={pki('ca.crt')}",
            f"--tls-cert-file={pki('apiserver.crt')}", f"--tls-private-key-file={pki('apiserver.key')}",
            f"--service-account-key-file={pki('sa.pub')}", f"--service-account-signing-key-file={pki('sa.key')}",
            "--service-account-issuer=https://kubernetes.default.svc", "--api-audiences=https://kubernetes.default.svc",
            "--kubelet-preferred-address-types=InternalIP", f"--kubelet-client-certificate={pki('admin.crt')}",
            f"--kubelet-client-key={pki('admin.key')}", "--authorization-mode=Node,RBAC", "--allow-privileged",
            "--profiling=false",
        )  # fmt: skip
        self.wait("the API server", self._ready, log="kube-apiserver")
        self.start(
            "kube-controller-manager", f"--kubeconfig={self.state / 'kube-controller-manager.kubeconfig'}",
            f"--service-account-private-key-file={pki('sa.key')}", f"--root-ca-file={pki('ca.crt')}",
            "--use-service-account-credentials", "--leader-elect=false", "--bind-address=127.0.0.1",
            "--controllers=*,-nodeipam,-node-route-controller,-service-lb-controller",
        )  # fmt: skip
        self.start(
            "kube-scheduler", f"--kubeconfig={self.state / 'kube-scheduler.kubeconfig'}", "--leader-elect=false",
            "--bind-address=127.0.0.1",
        )  # fmt: skip

    def _ready(self) -> bool:
        return self.kubeconfig.exists() and self.get("/api/v1/namespaces/default") != {}

    def _node(self) -> None:
        state = self.state
        network = state / "cni"
        network.mkdir(exist_ok=True)
        ranges = [[{"subnet": _PODS}]]
        bridge = {
            "type": "bridge",
            "bridge": _BRIDGE,
            "isGateway": True,
            "ipMasq": False,
            "hairpinMode": True,
            "ipam": {
                "type": "host-local",
                "ranges": ranges,
                "routes": [{"dst": "0.0.0.0/0"}],
                "dataDir": str(state / "ipam"),
            },
        }
        shutil.rmtree(state / "ipam", ignore_errors=True)
        (network / "10-testbed.conflist").write_text(
            json.dumps({"cniVersion": "0.4.0", "name": "testbed", "plugins": [bridge]})
        )
        (state / "containerd.toml").write_text(
            f'version = 2\nroot = "{state}/containerd"\nstate = "{state}/containerd-run"\n'
            f'[grpc]\n  address = "{state}/containerd.sock"\n'
            '[plugins."io.containerd.grpc.v1.cri"]\n'
            f'  sandbox_image = "{images.PAUSE}"\n'
            # Without this every sandbox fails where the machine forbids lowering a process's own score.
            "  restrict_oom_score_adj = true\n"
            '[plugins."io.containerd.grpc.v1.cri".cni]\n'
            f'  bin_dir = "/usr/lib/cni"\n  conf_dir = "{network}"\n'
        )
        self.start(
            "containerd",
            "-c",
            str(state / "containerd.toml"),
            program=shutil.which("containerd") or "containerd",
        )
        self.wait("containerd", lambda: self._ctr("version").returncode == 0, log="containerd")
        self._import_images()
        (state / "resolv.conf").write_text(f"nameserver {_DNS}\n")
        kubelet = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": _API,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": self.pki("ca.crt")},
            },
            "authorization": {"mode": "Webhook"},
            "cgroupDriver": "cgroupfs",
            "failSwapOn": False,
            "failCgroupV1": False,
            "clusterDNS": [_DNS],
            "clusterDomain": "cluster.local",
            "containerRuntimeEndpoint": f"unix://{state}/containerd.sock",
            "tlsCertFile": self.pki("kubelet.crt"),
            "tlsPrivateKeyFile": self.pki("kubelet.key"),
            "resolvConf": str(state / "resolv.conf"),
            "maxPods": 250,
            "imageGCHighThresholdPercent": 100,
            "evictionHard": {"memory.available": "100Mi"},
            "enforceNodeAllocatable": [],
        }
        (state / "kubelet.yaml").write_text(yaml.safe_dump(kubelet))
        self.start(
            "kubelet", f"--kubeconfig={state / 'kubelet.kubeconfig'}", f"--config={state / 'kubelet.yaml'}",
            f"--root-dir={state / 'kubelet'}", f"--hostname-override={NODE}", f"--node-ip={_API}",
        )  # fmt: skip

    def _import_images(self) -> None:
        """Import what containerd's store, which outlives the cluster, does not hold in this form yet."""
        memory, layers = self.state / "images.json", self.state / "layers"
        known: dict[str, list[str]] = json.loads(memory.read_text()) if memory.exists() else {}
        there = set(self._ctr("images", "ls", "-q").stdout.split())
        known = {name: keys for name, keys in known.items() if name in there}
        wanted = images.wanted(self._bin, self._project)
        for image in wanted:
            keys = [layer.key for layer in image.layers]
            if known.get(image.name) == keys:
                continue
            present = {key for keys in known.values() for key in keys}
            done = self._import(image, layers, present)
            if done.returncode and present:
                done = self._import(image, layers, set())  # the store may have lost what it held
            if done.returncode:
                raise Missing(f"the image {image.name} could not be imported: {done.stderr}")
            known[image.name] = keys
            memory.write_text(json.dumps(known))
        kept = {layer.key for image in wanted for layer in image.layers}
        for path in layers.iterdir():
            if path.stem not in kept:
                path.unlink()

    def _import(
        self, image: images.Image, layers: Path, present: set[str]
    ) -> subprocess.CompletedProcess[str]:
        target = self.state / "image.tar"
        images.archive(image, target, layers, present)
        done = self._ctr("images", "import", str(target))
        target.unlink()
        return done

    def _dns(self) -> None:
        (self.state / "Corefile").write_text(
            f"cluster.local:53 {{\n bind {_DNS}\n kubernetes cluster.local {{\n  kubeconfig {self.kubeconfig}\n  ttl 1\n }}\n"
            f" cache 1\n errors\n}}\n.:53 {{\n bind {_DNS}\n template ANY ANY {{\n  rcode NXDOMAIN\n }}\n}}\n"
        )
        self.start("coredns", "-conf", str(self.state / "Corefile"))

    def _ctr(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["ctr", "-a", str(self.state / "containerd.sock"), "-n", "k8s.io", *arguments]
        return subprocess.run(command, capture_output=True, text=True)

    # Steps of `down` ----------------------------------------------------------------------------------------------

    def _pid(self, name: str) -> int | None:
        try:
            return int((self.state / "run" / name).read_text())
        except (OSError, ValueError):
            return None

    def _stop(self, name: str) -> None:
        pid = self._pid(name)
        if pid is None or not self._is_ours(pid, name):
            return
        for number, seconds in ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0)):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                return
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                if not _alive(pid):
                    return
                time.sleep(0.05)

    def _is_ours(self, pid: int, name: str) -> bool:
        """Whether the process of that id is still the one that was started: ids are used again."""
        try:
            return name.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]
        except OSError:
            return False

    def _end_containers(self) -> None:
        if (self.state / "containerd.sock").exists():
            for container in self._ctr("tasks", "ls", "-q").stdout.split():
                self._ctr("tasks", "kill", "-s", "KILL", container)
            end = time.monotonic() + 5
            while time.monotonic() < end and "RUNNING" in self._ctr("tasks", "ls").stdout:
                time.sleep(0.1)
            for container in self._ctr("tasks", "ls", "-q").stdout.split():
                self._ctr("tasks", "delete", "-f", container)
            for container in self._ctr("containers", "ls", "-q").stdout.split():
                self._ctr("containers", "delete", container)

    def _unmount(self) -> None:
        mounted = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for path in sorted((m for m in mounted if m.startswith(f"{self.state}/")), reverse=True):
            _quiet("umount", "-l", path)


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    if state == "Z":
        # Ours and ended: taken off the list, so that its id can be used again.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        return False
    return True


def _condition(item: dict[str, Any], type_: str) -> bool:
    conditions = (item.get("status") or {}).get("conditions") or ()
    return any(c["type"] == type_ and c["status"] == "True" for c in conditions)


def _quiet(*command: str) -> None:
    subprocess.run(command, capture_output=True)
