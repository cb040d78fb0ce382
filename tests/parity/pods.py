"""Fields of a pod, of its containers and of its volumes, each as a strategy of values near what the Pod API allows."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.parity.edges import NUMBERS, key, label, label_value, labels, mostly, quantity, some, subdomain

__all__ = ["CLAIM", "CONTAINER", "POD", "VOLUME_SOURCES"]

Strategy = st.SearchStrategy[Any]


def numbers(*good: int) -> Strategy:
    return mostly(list(good), NUMBERS)


def one_of(*good: str) -> Strategy:
    return mostly(list(good), ["", "x", good[0].lower(), None, 1])


def several(item: Strategy, most: int = 2) -> Strategy:
    return mostly(st.lists(item, max_size=most), [None, [], "x", {}, [None], [1]])


def flags() -> Strategy:
    return mostly([True, False], [None, "true", 1])


TEXT = mostly(["a", "b"], ["", None, 1, "é", "x" * 70])
MODE = numbers(0, 0o777, 0o400)
PATHS = mostly(["a", "a/b", "..a"], ["", "..", "../a", "a/../b", "/a", "a/..", "..a/b", None, 1])
PORT_NAMES = mostly(
    ["http", "a-b", "0a"], ["", "0", "a--b", "-a", "a-", "A", "x" * 16, "x" * 15, "a_b", None]
)
PORT_NUMBERS = mostly([1, 80, 65535], [0, -1, 65536, None, "80", 1.5])
ENV_NAMES = mostly(["A", "a.b-c", "A B", "0", "x" * 300], ["", "A=B", "é", "a\n", "\t", None, 1])
RESOURCES = mostly(
    ["cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "example.com/x"],
    ["hugepages-2Mi", "hugepages-", "gpu", "storage", "pods", "kubernetes.io/x", "x.kubernetes.io/y", "requests.nvidia.com/gpu",
     "NVIDIA.com/gpu", "a/b/c", "", "cpu ", "limits.cpu", "x" * 64, "x" * 60 + ".com/gpu", "x" * 250 + "/gpu"],
)  # fmt: skip
AMOUNTS = mostly(st.dictionaries(RESOURCES, quantity(), max_size=2), [None, {}, [], {"cpu": None}])
REQUIREMENTS = some(
    limits=AMOUNTS,
    requests=AMOUNTS,
    claims=mostly([[]], [[{"name": "c"}], [{"name": "x"}], [{"name": ""}], None]),
)
FIELD_REF = some(
    fieldPath__=mostly(
        ["metadata.name", "metadata.labels['a']", "metadata.annotations['A.b/c']", "status.podIP", "spec.nodeName", "metadata.uid"],
        ["", "metadata.labels", "metadata.annotations", "metadata.labels['']", "metadata.labels['a b']", "metadata.name['a']", "spec.containers", "status.phase", "metadata.annotations['EX.com/a']", "status.hostIPs", "spec.restartPolicy", "metadata.labels['a'", "metadata.labels[a]"],
    ),
    apiVersion=mostly(["v1"], ["", "v2", None]),
)  # fmt: skip
RESOURCE_REF = some(
    resource__=mostly(["limits.cpu", "requests.memory", "limits.ephemeral-storage"], ["", "cpu", "limits.gpu", "limits.hugepages-2Mi", "requests.hugepages-x"]),
    divisor=mostly(["1", "1m", "1Mi", "0", 1], ["2", "1k", "10m", "x", "1000m", "1E", -1, None, "1u", "1024", "0.001"]),
    containerName=mostly(["main"], ["", "x", None]),
)  # fmt: skip
KEY_REF = some(
    name__=mostly(["a", "a.b"], ["", "A", "a_b", None]), key__=mostly(["a", "A_b.c-d", "..a"], ["", ".", "..", "../a", "a/b", "é", "x" * 254, None]), optional=flags()
)  # fmt: skip
ENV_SOURCE = mostly(
    st.one_of(
        some(fieldRef__=FIELD_REF),
        some(resourceFieldRef__=RESOURCE_REF),
        some(configMapKeyRef__=KEY_REF),
        some(secretKeyRef__=KEY_REF),
    ),
    st.one_of(
        st.sampled_from(
            [
                {},
                None,
                "x",
                {"fieldRef": None},
                {"fieldRef": {}},
                {"fileKeyRef": {"volumeName": "a", "path": "p", "key": "K"}},
            ]
        ),
        some(fieldRef__=FIELD_REF, secretKeyRef=KEY_REF),
    ),
)
ENV = st.one_of(
    some(name__=ENV_NAMES, value=mostly(["", "v", "$(A)"], [1, True, None, "é\n"])),
    some(name__=ENV_NAMES, valueFrom__=ENV_SOURCE),
    some(name__=ENV_NAMES, valueFrom__=ENV_SOURCE, value=TEXT),
)
REFERENCE = some(name__=mostly(["a", "a.b"], ["", "A", "a-", None, "x" * 254]), optional=flags())
ENV_FROM = mostly(
    st.one_of(some(configMapRef__=REFERENCE, prefix=ENV_NAMES), some(secretRef__=REFERENCE)),
    st.one_of(
        some(configMapRef=REFERENCE, secretRef=REFERENCE),
        st.sampled_from([{}, {"secretRef": {}}, {"prefix": "x"}]),
    ),
)
PORT = some(
    containerPort__=PORT_NUMBERS,
    name=PORT_NAMES,
    protocol=one_of("TCP", "UDP", "SCTP"),
    hostPort=mostly([0, 80, 443], PORT_NUMBERS),
    hostIP=mostly(["", "0.0.0.0", "10.0.0.1"], ["x", None, "300.1.1.1", 1]),
)
MOUNT = some(
    name__=mostly(["data", "scratch", "claim"], ["", "x", "Data", None, "config"]),
    mountPath__=mostly(["/data", "/a/b", "a", "/a:b"], ["", "..", "/", None, 1, "/data"]),
    subPath=PATHS,
    subPathExpr=mostly(["$(A)", ""], ["a/..", "/a", None]),
    readOnly=flags(),
    mountPropagation=one_of("None", "HostToContainer", "Bidirectional"),
    recursiveReadOnly=one_of("Disabled", "Enabled", "IfPossible"),
)
DEVICE = some(
    name__=mostly(["block", "claim"], ["", "x", "data"]),
    devicePath__=mostly(["/dev/a", "/dev/b"], ["", "..", "a/../b", "/data", None]),
)
PORT_REF = mostly([80, "http", 1], [0, 65536, "", "A", "80", None, 1.5, "x" * 16, -1])
HANDLERS: dict[str, Strategy] = {
    "exec": mostly([{"command": ["a"]}], [{}, {"command": []}, {"command": None}, {"command": [1]}, None]),
    "httpGet": some(
        port__=PORT_REF,
        path=mostly(["/", "a", ""], [None, 1]),
        scheme=one_of("HTTP", "HTTPS"),
        host=TEXT,
        httpHeaders=several(
            some(
                name__=mostly(["A", "X-b"], ["", "a b", "é", "a:b", None]), value=mostly(["", "v"], [None, 1])
            )
        ),
    ),
    "tcpSocket": some(port__=PORT_REF, host=TEXT),
    "grpc": some(port__=PORT_NUMBERS, service=TEXT),
    "sleep": some(seconds__=mostly([0, 1, 30], [-1, 31, 60, None, 2**63, "1"])),
}


def handler(*names: str) -> Strategy:
    one = st.sampled_from(names).flatmap(lambda name: st.fixed_dictionaries({name: HANDLERS[name]}))
    return mostly(
        one,
        st.one_of(
            st.sampled_from([{}, None, {"exec": {}}]),
            some(exec=HANDLERS["exec"], tcpSocket=HANDLERS["tcpSocket"]),
        ),
    )


PROBE = st.builds(
    lambda how, more: {**(how or {}), **more} if how is not None else None,
    handler("exec", "httpGet", "tcpSocket", "grpc"),
    some(
        initialDelaySeconds=numbers(0, 1),
        timeoutSeconds=numbers(1, 5),
        periodSeconds=numbers(1, 10),
        successThreshold=mostly([1], NUMBERS),
        failureThreshold=numbers(1, 3),
        terminationGracePeriodSeconds=mostly([1, 30], NUMBERS),
    ),
)
USER = mostly([0, 1000, 2**31 - 1], [-1, 2**31, 2**63, None, "0", 1.5])
SECCOMP = mostly(
    [{"type": "RuntimeDefault"}, {"type": "Unconfined"}, {"type": "Localhost", "localhostProfile": "a"}],
    [{}, {"type": ""}, {"type": "x"}, {"type": "Localhost"}, {"type": "RuntimeDefault", "localhostProfile": "a"}, {"type": "Localhost", "localhostProfile": "/a"}, {"type": "Localhost", "localhostProfile": ".."}, {"type": "Localhost", "localhostProfile": ""}, {"type": "Unconfined", "localhostProfile": ""}, None],
)  # fmt: skip
APPARMOR = mostly(
    [{"type": "RuntimeDefault"}, {"type": "Unconfined"}, {"type": "Localhost", "localhostProfile": "a"}],
    [{}, {"type": ""}, {"type": "x"}, {"type": "Localhost"}, {"type": "RuntimeDefault", "localhostProfile": "a"}, {"type": "Localhost", "localhostProfile": " a"}, {"type": "Localhost", "localhostProfile": ""}, {"type": "Localhost", "localhostProfile": "x" * 4096}, None],
)  # fmt: skip
SELINUX = mostly([{}, {"level": "s0"}], [None, {"x": 1}, {"type": 1}])
CONTAINER_SECURITY = some(
    privileged=flags(),
    runAsUser=USER,
    runAsGroup=USER,
    runAsNonRoot=flags(),
    readOnlyRootFilesystem=flags(),
    allowPrivilegeEscalation=flags(),
    procMount=mostly(["Default"], ["Unmasked", "", "x", None]),
    capabilities=mostly(
        [{}, {"add": ["NET_ADMIN"]}],
        [{"add": ["CAP_SYS_ADMIN"]}, {"add": ["SYS_ADMIN"]}, {"add": "x"}, {"drop": [1]}, None],
    ),
    seccompProfile=SECCOMP,
    appArmorProfile=APPARMOR,
    seLinuxOptions=SELINUX,
)
RESTART_RULES = several(
    some(
        action__=one_of("Restart"),
        exitCodes__=mostly([{"operator": "In", "values": [1, 2]}], [None, {}, {"operator": "x", "values": [1]}, {"operator": "NotIn", "values": []}, {"operator": "In", "values": [1, 1]}, {"operator": "In", "values": [0]}]),
    )
)  # fmt: skip
CONTAINER: dict[str, Strategy] = {
    "name": label(),
    "image": mostly(["a", "example.com/a:b@sha256:x"], ["", " ", " a", "a ", "a\n", None, 1]),
    "command": mostly([["a"], []], [None, "a", [1], [None], [["a"]]]),
    "args": mostly([["a"], ["--x=$(A)"]], [None, "a", [1], [True]]),
    "workingDir": TEXT,
    "env": several(ENV, 3),
    "envFrom": several(ENV_FROM),
    "ports": several(PORT, 3),
    "volumeMounts": several(MOUNT, 3),
    "volumeDevices": several(DEVICE),
    "resources": REQUIREMENTS,
    "resizePolicy": several(
        some(
            resourceName__=mostly(["cpu", "memory"], ["", "x", None]),
            restartPolicy__=mostly(["NotRequired"], ["RestartContainer", "", "x", None]),
        )
    ),
    "livenessProbe": PROBE,
    "readinessProbe": PROBE,
    "startupProbe": PROBE,
    "lifecycle": mostly(
        some(
            postStart=handler("exec", "httpGet", "tcpSocket", "sleep"),
            preStop=handler("exec", "httpGet", "tcpSocket", "sleep"),
        ),
        [None, {}, {"stopSignal": "SIGTERM"}, {"stopSignal": "SIGX"}, {"preStop": {}}, {"x": 1}],
    ),
    "terminationMessagePath": TEXT,
    "terminationMessagePolicy": one_of("File", "FallbackToLogsOnError"),
    "imagePullPolicy": one_of("Always", "IfNotPresent", "Never"),
    "securityContext": CONTAINER_SECURITY,
    "restartPolicy": mostly(["Always"], ["Never", "OnFailure", "", "x", None]),
    "restartPolicyRules": RESTART_RULES,
    "stdin": flags(),
    "stdinOnce": flags(),
    "tty": flags(),
}

ITEMS = several(some(key__=mostly(["a", "A"], ["", "é", "a/b", None]), path__=PATHS, mode=MODE))
SELECTOR = mostly(
    some(
        matchLabels=labels(),
        matchExpressions=several(
            some(
                key__=key(),
                operator__=one_of("In", "NotIn", "Exists", "DoesNotExist"),
                values=mostly([["a"], ["a", "b"]], [[], None, [""], ["-a"], ["a b"], [1]]),
            )
        ),
    ),
    [None, {}, {"x": 1}, {"matchLabels": {"a": "b"}}],
)
CLAIM: dict[str, Strategy] = {
    "accessModes": mostly([["ReadWriteOnce"], ["ReadWriteMany", "ReadOnlyMany"], ["ReadWriteOncePod"]], [[], None, ["x"], ["ReadWriteOncePod", "ReadWriteOnce"], [""], "ReadWriteOnce", ["ReadWriteOnce", "ReadWriteOnce"]]),
    "resources": mostly(
        some(requests__=mostly(st.dictionaries(st.sampled_from(["storage", "x", "a b", ""]), quantity(), min_size=1, max_size=2), [{}, None]), limits=AMOUNTS),
        [{}, None, {"requests": {"storage": "0"}}, {"requests": {"storage": "-1"}}, {"claims": []}],
    ),
    "storageClassName": mostly(["", "a", "a.b"], ["A", "a_b", None, 1]),
    "volumeMode": one_of("Filesystem", "Block"),
    "volumeName": TEXT,
    "selector": SELECTOR,
    "dataSource": mostly(
        [{"kind": "PersistentVolumeClaim", "name": "a"}, {"apiGroup": "a.b", "kind": "X", "name": "a"}],
        [{}, None, {"kind": "X", "name": "a"}, {"kind": "PersistentVolumeClaim"}, {"apiGroup": "A", "kind": "X", "name": "a"}, {"apiGroup": "", "kind": "PersistentVolumeClaim", "name": "a"}],
    ),
    "dataSourceRef": mostly(
        [{"kind": "PersistentVolumeClaim", "name": "a"}, {"apiGroup": "a.b", "kind": "X", "name": "a"}],
        [{}, None, {"kind": "X", "name": "a"}, {"kind": "PersistentVolumeClaim", "name": "a", "namespace": "b"}, {"kind": "PersistentVolumeClaim", "name": "a", "namespace": "B"}],
    ),
    "volumeAttributesClassName": mostly(["", "a"], ["A", None]),
}  # fmt: skip
CLAIM_SPEC = some(
    accessModes__=CLAIM["accessModes"], resources__=CLAIM["resources"], storageClassName=CLAIM["storageClassName"], selector=CLAIM["selector"],
    dataSource=CLAIM["dataSource"], dataSourceRef=CLAIM["dataSourceRef"],
)  # fmt: skip
DOWNWARD = several(
    mostly(
        st.one_of(
            some(path__=PATHS, fieldRef__=FIELD_REF, mode=MODE),
            some(path__=PATHS, resourceFieldRef__=RESOURCE_REF),
        ),
        st.one_of(
            some(path__=PATHS), some(path__=PATHS, fieldRef__=FIELD_REF, resourceFieldRef__=RESOURCE_REF)
        ),
    )
)
NAMES = mostly(["a", "a.b"], ["", None, "A", 1])
PROJECTION = mostly(
    st.one_of(
        some(secret__=some(name__=NAMES, items=ITEMS)),
        some(configMap__=some(name__=NAMES, items=ITEMS, optional=flags())),
        some(downwardAPI__=some(items=DOWNWARD)),
        some(serviceAccountToken__=some(path__=PATHS, audience=TEXT, expirationSeconds=mostly([600, 3600, 2**32], [599, 0, 2**32 + 1, None, -1]))),
        some(clusterTrustBundle__=some(path__=PATHS, name=mostly(["a", "a:b:c"], ["", "A", "a.b", None]), signerName=mostly(["a.b/c"], ["", "a", "a/b", None]))),
    ),
    st.sampled_from([{}, None, {"secret": {}}, {"secret": {"name": "a"}, "configMap": {"name": "a"}}]),
)  # fmt: skip
VOLUME_SOURCES: dict[str, Strategy] = {
    "emptyDir": some(medium=mostly(["", "Memory", "HugePages", "HugePages-2Mi"], ["x", None, 1]), sizeLimit=quantity()),
    "hostPath": some(path__=mostly(["/a", "a"], ["", "..", "/a/../b", None]), type=mostly(["", "Directory", "File", "Socket"], ["x", None])),
    "configMap": some(name__=NAMES, items=ITEMS, defaultMode=MODE, optional=flags()),
    "secret": some(secretName__=NAMES, items=ITEMS, defaultMode=MODE),
    "persistentVolumeClaim": some(claimName__=NAMES, readOnly=flags()),
    "downwardAPI": some(items=DOWNWARD, defaultMode=MODE),
    "projected": some(sources=several(PROJECTION), defaultMode=MODE),
    "nfs": some(server__=NAMES, path__=mostly(["/a"], ["", "a", None]), readOnly=flags()),
    "csi": some(
        driver__=mostly(["a.b", "A.b", "x" * 63], ["", "a_b", "x" * 64, None, "-a"]), nodePublishSecretRef=mostly([{"name": "a"}], [{}, None, {"name": "A"}])
    ),
    "ephemeral": some(volumeClaimTemplate__=mostly(some(spec__=CLAIM_SPEC, metadata=mostly([{}, {"labels": {"a": "b"}}], [{"name": "a"}, None, {"labels": {"a b": ""}}, {"finalizers": ["a"]}])), [None, {}])),
    "image": some(reference=mostly(["a"], ["", None, " a"]), pullPolicy=one_of("Always", "Never")),
    "gitRepo": some(repository__=NAMES, directory=PATHS),
    "awsElasticBlockStore": some(volumeID__=NAMES, partition=numbers(0, 255)),
    "gcePersistentDisk": some(pdName__=NAMES, partition=numbers(0, 255)),
    "iscsi": some(
        targetPortal__=NAMES,
        iqn__=mostly(["iqn.2001-04.com.example:a", "eui.0123456789abcdef", "naa.0123456789abcdef"], ["", "x", "iqn", "eui.1", "naa.x"]),
        lun__=numbers(0, 255),
        chapAuthSession=flags(),
        initiatorName=mostly(["iqn.2001-04.com.example:a"], ["", "x", None]),
    ),
    "fc": some(targetWWNs=mostly([["a"]], [[], None]), lun=numbers(0, 255), wwids=mostly([[]], [["a"], None])),
    "cephfs": some(monitors__=mostly([["a"]], [[], None]), path=TEXT),
    "rbd": some(monitors__=mostly([["a"]], [[], None]), image__=NAMES),
    "azureDisk": some(diskName__=NAMES, diskURI__=mostly(["https://a", "/subscriptions/a"], ["", "a", None]), cachingMode=one_of("None", "ReadOnly"), kind=one_of("Shared", "Managed")),
    "azureFile": some(secretName__=NAMES, shareName__=NAMES),
    "glusterfs": some(endpoints__=NAMES, path__=NAMES),
    "flexVolume": some(driver__=NAMES, options=mostly([{}], [{"kubernetes.io/a": "b"}, {"a": "b"}, None])),
    "cinder": some(volumeID__=NAMES),
    "portworxVolume": some(volumeID__=NAMES),
    "vsphereVolume": some(volumePath__=NAMES),
    "photonPersistentDisk": some(pdID__=NAMES),
    "quobyte": some(registry__=mostly(["a:1", "a:1,b:2"], ["", "a", "a:1,b", None]), volume__=NAMES, tenant=mostly(["a"], ["x" * 65, ""])),
    "flocker": some(datasetName=NAMES, datasetUUID=mostly(["a"], ["", None])),
    "storageos": some(volumeName=label(), volumeNamespace=label(), secretRef=mostly([{"name": "a"}], [{}, None])),
    "scaleIO": some(gateway__=NAMES, system__=NAMES, secretRef__=mostly([{"name": "a"}], [None, {}]), volumeName=NAMES),
}  # fmt: skip
TOLERATION = some(
    key=key(),
    operator=one_of("Exists", "Equal"),
    value=label_value(),
    effect=one_of("NoSchedule", "NoExecute", "PreferNoSchedule"),
    tolerationSeconds=mostly([0, 10], [-1, None, 2**63]),
)
NODE_REQUIREMENT = some(
    key__=key(),
    operator__=one_of("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"),
    values=mostly([["a"], ["1"]], [[], None, ["a", "b"], ["-a"], [1], "a"]),
)
NODE_FIELDS = some(
    key__=mostly(["metadata.name"], ["", "a", None]),
    operator__=one_of("In", "NotIn", "Exists"),
    values=mostly([["a"]], [[], ["a", "b"], ["A"], None]),
)
NODE_TERM = mostly(
    some(matchExpressions=several(NODE_REQUIREMENT), matchFields=several(NODE_FIELDS, 1)), [{}, None]
)
KEYS = mostly([["a"]], [[], None, ["a b"], ["b"], [""]])
POD_TERM = some(
    topologyKey__=key(),
    labelSelector=SELECTOR,
    namespaces=mostly([["a"]], [[], None, ["A"], [""]]),
    namespaceSelector=SELECTOR,
    matchLabelKeys=KEYS,
    mismatchLabelKeys=KEYS,
)
WEIGHT = mostly([1, 100], [0, 101, -1, None, "1"])
POD_AFFINITY = some(
    requiredDuringSchedulingIgnoredDuringExecution=several(POD_TERM),
    preferredDuringSchedulingIgnoredDuringExecution=several(
        some(weight__=WEIGHT, podAffinityTerm__=POD_TERM)
    ),
)
AFFINITY = some(
    nodeAffinity=some(
        requiredDuringSchedulingIgnoredDuringExecution=mostly(
            some(nodeSelectorTerms__=several(NODE_TERM)), [None, {}]
        ),
        preferredDuringSchedulingIgnoredDuringExecution=several(
            some(weight__=WEIGHT, preference__=NODE_TERM)
        ),
    ),
    podAffinity=POD_AFFINITY,
    podAntiAffinity=POD_AFFINITY,
)
SPREAD = some(
    maxSkew__=mostly([1, 2], [0, -1, None]),
    topologyKey__=key(),
    whenUnsatisfiable__=one_of("DoNotSchedule", "ScheduleAnyway"),
    labelSelector=SELECTOR,
    minDomains=mostly([1], [0, -1, None]),
    nodeAffinityPolicy=one_of("Honor", "Ignore"),
    nodeTaintsPolicy=one_of("Honor", "Ignore"),
    matchLabelKeys=KEYS,
)
POD_SECURITY = some(
    runAsUser=USER,
    runAsGroup=USER,
    runAsNonRoot=flags(),
    fsGroup=USER,
    supplementalGroups=several(USER),
    supplementalGroupsPolicy=one_of("Merge", "Strict"),
    fsGroupChangePolicy=one_of("Always", "OnRootMismatch"),
    seLinuxChangePolicy=one_of("Recursive", "MountOption"),
    seccompProfile=SECCOMP,
    appArmorProfile=APPARMOR,
    seLinuxOptions=SELINUX,
    sysctls=several(
        some(
            name__=mostly(["net.a", "kernel.shm_x", "net/a"], ["", "A", "a..b", "a-", None, "net.ipv4.x"]),
            value=TEXT,
        )
    ),
)
ADDRESSES = mostly(
    ["10.0.0.1", "::1", "fd00::1"], ["", "x", "010.0.0.1", "10.0.0.256", "::ffff:1.2.3.4", None, "10.0.0.1 "]
)
DNS = some(
    nameservers=mostly(st.lists(ADDRESSES, max_size=3), [["1.1.1.1"] * 4, None, "x"]),
    searches=mostly(
        [["a.b"], ["a.b.", "_x.y"]],
        [["."], [""], ["A"], ["a"] * 33, ["x" * 63 + "." + "x" * 63] * 17, None, ["a.."]],
    ),
    options=mostly(
        [[{"name": "a"}], [{"name": "a", "value": "b"}]], [[{}], [{"name": ""}], None, [{"name": 1}]]
    ),
)
POD: dict[str, Strategy] = {
    "restartPolicy": mostly(["Never", "OnFailure"], ["Always", "", "x", "never", None, 1]),
    "activeDeadlineSeconds": numbers(1, 2**31 - 1),
    "terminationGracePeriodSeconds": mostly([0, 30], NUMBERS),
    "hostname": label(),
    "subdomain": label(),
    "hostnameOverride": subdomain(),
    "setHostnameAsFQDN": flags(),
    "dnsPolicy": one_of("ClusterFirst", "Default", "ClusterFirstWithHostNet", "None"),
    "dnsConfig": DNS,
    "hostAliases": several(some(ip__=ADDRESSES, hostnames=several(subdomain()))),
    "hostNetwork": flags(),
    "hostPID": flags(),
    "hostIPC": flags(),
    "hostUsers": flags(),
    "shareProcessNamespace": flags(),
    "enableServiceLinks": flags(),
    "automountServiceAccountToken": flags(),
    "serviceAccountName": subdomain(),
    "serviceAccount": subdomain(),
    "schedulerName": TEXT,
    "nodeName": subdomain(),
    "nodeSelector": labels(),
    "priority": numbers(0),
    "priorityClassName": mostly(["system-node-critical", ""], ["A", "x", None, 1]),
    "preemptionPolicy": one_of("PreemptLowerPriority", "Never"),
    "runtimeClassName": mostly(["a"], ["", "A", None, 1, "a.b"]),
    "overhead": mostly([{}, None], [{"cpu": "1"}, {"x": "1"}, []]),
    "imagePullSecrets": several(some(name=mostly(["a", "b"], ["", "A", None, 1]))),
    "readinessGates": several(some(conditionType__=key())),
    "schedulingGates": several(some(name__=key())),
    "resourceClaims": several(
        mostly(
            some(name__=label(), resourceClaimName__=subdomain()),
            [{}, {"name": "c"}, {"name": "c", "resourceClaimTemplateName": "a"}, {"name": "c", "resourceClaimTemplateName": "a", "resourceClaimName": "a"}],
        )
    ),
    "resources": REQUIREMENTS,
    "tolerations": several(TOLERATION),
    "affinity": AFFINITY,
    "topologySpreadConstraints": several(SPREAD),
    "securityContext": POD_SECURITY,
    "os": mostly([{"name": "linux"}], [{}, None, {"name": ""}, {"name": "x"}, {"name": "windows"}]),
    "ephemeralContainers": mostly([[], None], [[{"name": "e", "image": "i"}], [{}], "x"]),
    "volumes": several(
        st.builds(
            lambda name, source: {"name": name, **source} if isinstance(source, dict) else source,
            mostly(["data", "scratch", "config", "block"], label()),
            mostly(
                st.sampled_from(sorted(VOLUME_SOURCES)).flatmap(lambda kind: st.fixed_dictionaries({kind: VOLUME_SOURCES[kind]})),
                [{}, None, {"emptyDir": None}, {"emptyDir": {}, "hostPath": {"path": "/a"}}, {"x": {}}],
            ),
        ),
        3,
    ),
}  # fmt: skip
