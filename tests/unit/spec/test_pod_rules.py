"""Pods as the Pod API judges them: what it refuses is one fault at its place, and what it accepts is none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.spec.examples import container, job, jobset, pod, replicated, rules_of

POD = "spec.replicatedJobs[0].template.spec.template"
MAIN = f"{POD}.spec.containers[0]"
DATA = {"name": "data", "emptyDir": {}}
CLAIM = {"name": "disk", "persistentVolumeClaim": {"claimName": "c"}}


def of(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return jobset(replicated(spec=job(pod(*containers, **spec))))


def one(**fields: Any) -> dict[str, Any]:
    return of(container(**fields))


def env(**source: Any) -> dict[str, Any]:
    return one(env=[{"name": "A", "valueFrom": source}])


def labelled(**labels: str) -> dict[str, Any]:
    return jobset(replicated(spec=job({"metadata": {"labels": labels}, **pod()})))


def resources(**fields: Any) -> dict[str, Any]:
    return one(resources=fields)


def projected(*sources: dict[str, Any]) -> dict[str, Any]:
    return of(volumes=[{"name": "v", "projected": {"sources": list(sources)}}])


REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    ("a label that is the Job's own", labelled(**{"job-name": "x"}), f"{POD}.metadata.labels.job-name", "job-label"),
    ("a restart rule that does nothing", one(restartPolicyRules=[None]), f"{MAIN}.restartPolicyRules[0].action", "required"),
    ("a finalizer without domain", jobset(replicated(spec=job({"metadata": {"finalizers": ["a"]}, **pod()}))), f"{POD}.metadata.finalizers[0]", "key-form"),
    ("a variable twice", one(env=[{"name": "A"}, {"name": "A"}]), f"{MAIN}.env[1].name", "duplicate"),
    ("a port twice, by default TCP", one(ports=[{"containerPort": 1}, {"containerPort": 1, "protocol": "TCP"}]), f"{MAIN}.ports[1]", "duplicate"),
    ("a port of 32 bits", one(ports=[{"containerPort": 2**31}]), f"{MAIN}.ports[0].containerPort", "type"),
    ("a node's port twice", of(container(ports=[{"containerPort": 1, "hostPort": 9}]), {"name": "b", "image": "i", "ports": [{"containerPort": 2, "hostPort": 9}]}),
     f"{POD}.spec.containers[1].ports[0].hostPort", "duplicate"),
    ("hostNetwork and another hostPort", of(container(ports=[{"containerPort": 1, "hostPort": 9}]), hostNetwork=True), f"{MAIN}.ports[0].hostPort", "host-port"),
    ("a key with '..'", env(secretKeyRef={"name": "a", "key": "..a"}), f"{MAIN}.env[0].valueFrom.secretKeyRef.key", "key-form"),
    ("a divisor that is no unit", env(resourceFieldRef={"resource": "limits.cpu", "divisor": "10m"}), f"{MAIN}.env[0].valueFrom.resourceFieldRef.divisor", "divisor"),
    ("two sources of variables", one(envFrom=[{"secretRef": {"name": "a"}, "configMapRef": {"name": "a"}}]), f"{MAIN}.envFrom[0]", "one-of"),
    ("a subPath that goes up", of(container(volumeMounts=[{"name": "data", "mountPath": "/d", "subPath": "a/.."}]), volumes=[DATA]), f"{MAIN}.volumeMounts[0].subPath", "path-form"),
    ("a mount that reaches the node", of(container(volumeMounts=[{"name": "data", "mountPath": "/d", "mountPropagation": "Bidirectional"}]), volumes=[DATA]),
     f"{MAIN}.volumeMounts[0].mountPropagation", "mount-propagation"),
    ("a device of a directory", of(container(volumeDevices=[{"name": "data", "devicePath": "/dev/a"}]), volumes=[DATA]), f"{MAIN}.volumeDevices[0].name", "device-volume"),
    ("a mount that is a device too", of(container(volumeMounts=[{"name": "disk", "mountPath": "/d"}], volumeDevices=[{"name": "disk", "devicePath": "/dev/a"}]), volumes=[CLAIM]),
     f"{MAIN}.volumeMounts[0]", "mount-and-device"),
    ("a resource without a domain", resources(limits={"gpu": 1}), f"{MAIN}.resources.limits.gpu", "resource-name"),
    ("half a GPU", resources(limits={"nvidia.com/gpu": "500m"}), f"{MAIN}.resources.limits.nvidia.com/gpu", "quantity"),
    ("a GPU requested without limit", resources(requests={"nvidia.com/gpu": 1}), f"{MAIN}.resources.requests.nvidia.com/gpu", "request-without-limit"),
    ("fewer GPUs requested than the limit", resources(requests={"nvidia.com/gpu": 1}, limits={"nvidia.com/gpu": 2}), f"{MAIN}.resources.requests.nvidia.com/gpu", "request-above-limit"),
    ("huge pages alone", resources(limits={"hugepages-2Mi": "2Mi"}), f"{MAIN}.resources", "huge-pages"),
    ("a probe that does two things", one(livenessProbe={"exec": {"command": ["a"]}, "tcpSocket": {"port": 1}}), f"{MAIN}.livenessProbe", "one-of"),
    ("a liveness probe that must succeed twice", one(livenessProbe={"exec": {"command": ["a"]}, "successThreshold": 2}), f"{MAIN}.livenessProbe.successThreshold", "probe-threshold"),
    ("a readiness probe with a grace period", one(readinessProbe={"exec": {"command": ["a"]}, "terminationGracePeriodSeconds": 1}),
     f"{MAIN}.readinessProbe.terminationGracePeriodSeconds", "probe-grace"),
    ("a sleep beyond the grace period", one(lifecycle={"preStop": {"sleep": {"seconds": 31}}}), f"{MAIN}.lifecycle.preStop.sleep.seconds", "out-of-range"),
    ("an init container with a probe", of(initContainers=[{"name": "i", "image": "i", "livenessProbe": {"exec": {"command": ["a"]}}}]), f"{POD}.spec.initContainers[0].livenessProbe", "init-container"),
    ("a user of 32 bits", one(securityContext={"runAsUser": 2**31}), f"{MAIN}.securityContext.runAsUser", "out-of-range"),
    ("a profile without a file", one(securityContext={"seccompProfile": {"type": "Localhost"}}), f"{MAIN}.securityContext.seccompProfile.localhostProfile", "required"),
    ("no escalation, and privileged", one(securityContext={"allowPrivilegeEscalation": False, "privileged": True}), f"{MAIN}.securityContext.allowPrivilegeEscalation", "privileges"),
    ("a toleration without key", of(tolerations=[{"value": "a"}]), f"{POD}.spec.tolerations[0].operator", "toleration"),
    ("an affinity without term", of(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}),
     f"{POD}.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms", "required"),
    ("a weight of 0", of(affinity={"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0, "podAffinityTerm": {"topologyKey": "a"}}]}}),
     f"{POD}.spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight", "out-of-range"),
    ("label keys without selector", of(topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["a"]}]),
     f"{POD}.spec.topologySpreadConstraints[0].matchLabelKeys", "match-label-keys"),
    ("a spread constraint twice", of(topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}] * 2), f"{POD}.spec.topologySpreadConstraints[1]", "duplicate"),
    ("four name servers", of(dnsConfig={"nameservers": ["1.1.1.1"] * 4}), f"{POD}.spec.dnsConfig.nameservers", "too-many"),
    ("no name server at all", of(dnsPolicy="None"), f"{POD}.spec.dnsConfig.nameservers", "required"),
    ("an alias of no address", of(hostAliases=[{"ip": "10.0.0.256"}]), f"{POD}.spec.hostAliases[0].ip", "address"),
    ("two sources of a volume", of(volumes=[{**DATA, "hostPath": {"path": "/"}}]), f"{POD}.spec.volumes[0]", "volume-source"),
    ("a mode beyond 0777", of(volumes=[{"name": "v", "secret": {"secretName": "a", "defaultMode": 512}}]), f"{POD}.spec.volumes[0].secret.defaultMode", "out-of-range"),
    ("a share with a relative path", of(volumes=[{"name": "v", "nfs": {"server": "a", "path": "b"}}]), f"{POD}.spec.volumes[0].nfs.path", "path-form"),
    ("a token for five minutes", projected({"serviceAccountToken": {"path": "t", "expirationSeconds": 300}}), f"{POD}.spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds", "out-of-range"),
    ("two files of a path", projected({"secret": {"name": "a", "items": [{"key": "a", "path": "p"}, {"key": "b", "path": "p"}]}}), f"{POD}.spec.volumes[0].projected.sources[0].secret.items[1].path", "duplicate"),
    ("a projection of nothing", of(volumes=[{"name": "v", "projected": {}}]), f"{POD}.spec.volumes[0].projected.sources", "required"),
    ("a claim in a pod that asks for nothing", of(volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}}]),
     f"{POD}.spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests.storage", "required"),
    ("more than the pod may have", of(container(resources={"limits": {"cpu": 2}, "requests": {"cpu": 1}}), resources={"limits": {"cpu": 1}}), f"{POD}.spec.resources.limits.cpu", "pod-resources"),
    ("a user namespace and the node's network", of(hostUsers=False, hostNetwork=True), f"{POD}.spec.hostNetwork", "host-sharing"),
    ("windows and a linux setting", of(os={"name": "windows"}, securityContext={"fsGroup": 1}), f"{POD}.spec.securityContext.fsGroup", "os"),
    ("a container added to a running pod", of(ephemeralContainers=[{"name": "e", "image": "i"}]), f"{POD}.spec.ephemeralContainers", "ephemeral-container"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("tree", "path", "rule"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_what_the_pod_api_refuses_is_one_fault(tree: dict[str, Any], path: str, rule: str) -> None:
    assert rules_of(tree) == [(path, rule)]


ACCEPTED: list[tuple[str, dict[str, Any]]] = [
    ("a quantity with spaces around it", resources(limits={"cpu": " 1 "})),
    ("a quantity as a fraction", resources(limits={"cpu": 1.5})),
    ("a whole number as a fraction", of(activeDeadlineSeconds=60.0)),
    ("null anywhere is unset", of(container(env=None, command=[None], resources={"limits": {"cpu": None}}), volumes=None)),
    ("empty text is unset", of(container(imagePullPolicy=""), hostname="", dnsPolicy="")),
    ("a variable's name with spaces", one(env=[{"name": "a b"}])),
    ("a container's GPU limit alone", resources(limits={"nvidia.com/gpu": 1})),
    ("an address with leading zeros", of(hostAliases=[{"ip": "010.0.0.1"}])),
    ("the root of search domains", of(dnsConfig={"searches": [".", "_tcp.a."]})),
    ("a secret's name that is yet to be completed", one(envFrom=[{"secretRef": {"name": "a-"}}])),
    ("an annotation's domain in capitals", env(fieldRef={"fieldPath": "metadata.annotations['EX.com/a']"})),
    ("a name of the same mount and volume twice", of(container(volumeMounts=[{"name": "data", "mountPath": "/a"}, {"name": "data", "mountPath": "/b"}]), volumes=[DATA])),
    ("a header without value", one(livenessProbe={"httpGet": {"port": 80, "httpHeaders": [{"name": "A"}]}})),
    ("a threshold of 0 is the default", one(livenessProbe={"exec": {"command": ["a"]}, "successThreshold": 0})),
    ("a preferred value that is no label", of(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["-"]}]}}]}})),
]  # fmt: skip


@pytest.mark.parametrize("tree", [row[1] for row in ACCEPTED], ids=[row[0] for row in ACCEPTED])
def test_what_the_pod_api_accepts_is_no_fault(tree: dict[str, Any]) -> None:
    assert rules_of(tree) == []


def test_a_template_that_no_job_is_made_of_is_judged_by_its_structure_alone() -> None:
    sound = replicated("sound")
    unused = replicated("unused", job(pod(container(image="")), backoffLimit=-1), replicas=0)
    assert rules_of(jobset(sound, unused)) == []
    misspelt = replicated("unused", job(pod(container(imag="a"))), replicas=0)
    assert [rule for _, rule in rules_of(jobset(sound, misspelt))] == ["unknown-field"]


def test_a_subdomain_is_looked_at_only_where_jobset_does_not_set_it() -> None:
    tree = of(subdomain="A")
    assert rules_of(tree, waive=("pod-host-name",)) == []
    tree["spec"]["network"] = {"enableDNSHostnames": False}
    assert rules_of(tree, waive=("pod-host-name",)) == [(f"{POD}.spec.subdomain", "name-form")]
