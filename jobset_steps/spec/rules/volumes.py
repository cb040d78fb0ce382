"""Rules of a pod's volumes: exactly one source each, and what every kind of source needs.

Source: the Pod API's validation (v1, Kubernetes 1.34), on volumes whose structure is right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jobset_steps.spec.fault import Fault
from jobset_steps.spec.rules import forms
from jobset_steps.spec.rules.claim_spec import claim_spec_faults
from jobset_steps.spec.rules.metadata import annotation_faults, label_faults
from jobset_steps.spec.rules.quantity import amount_of
from jobset_steps.spec.rules.references import FILE_FIELDS, field_faults, resource_field_faults

__all__ = ["is_dropped", "volume_faults"]

# What a source needs and nothing more.
_NEEDS: dict[str, tuple[str, ...]] = {
    "persistentVolumeClaim": ("claimName",),
    "glusterfs": ("endpoints", "path"),
    "rbd": ("monitors", "image"),
    "cephfs": ("monitors",),
    "cinder": ("volumeID",),
    "portworxVolume": ("volumeID",),
    "vsphereVolume": ("volumePath",),
    "photonPersistentDisk": ("pdID",),
    "azureFile": ("secretName", "shareName"),
    "azureDisk": ("diskName", "diskURI"),
    "scaleIO": ("gateway", "system", "volumeName"),
    "flexVolume": ("driver",),
    "gitRepo": ("repository",),
    "nfs": ("server", "path"),
    "hostPath": ("path",),
    "iscsi": ("targetPortal", "iqn"),
    "awsElasticBlockStore": ("volumeID",),
    "gcePersistentDisk": ("pdName",),
    "quobyte": ("registry", "volume"),
    "storageos": ("volumeName",),
}
_IQN = re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$", re.ASCII)
_EUI, _NAA = re.compile(r"eui.[A-Za-z0-9]{16}"), re.compile(r"naa.[A-Za-z0-9]{32}")
_HOST_PORT = re.compile(r"(\[[^\[\]]*\]|[^\[\]:]*):[^\[\]:]*")


def volume_faults(path: str, volumes: list[Any]) -> Iterator[Fault]:
    """Faults of a pod's volumes at `path`."""
    yield from _claimed_twice(path, volumes)
    for index, volume in enumerate(volumes):
        here = f"{path}[{index}]"
        if is_dropped(volume):
            message = "is dropped with its mounts, without a word, while the feature gate ImageVolume is off, the default"
            yield Fault(
                f"{here}.image", "dropped-field", message, passes="another kind of volume", waivable=True
            )
            continue
        yield from forms.label(f"{here}.name", volume.get("name") or "")
        sources = [key for key in volume if key != "name"]
        if not sources:
            message = "without a source it is an emptyDir"
            yield Fault(here, "volume-without-source", message, passes="such as emptyDir: {}", waivable=True)
        elif len(sources) > 1:
            yield Fault(here, "volume-source", "exactly one source", ", ".join(sources), "one of them")
        for kind in sources:
            yield from _source(f"{here}.{kind}", kind, volume[kind])


def _claimed_twice(path: str, volumes: list[Any]) -> Iterator[Fault]:
    """The kubelet mounts a claim once a pod, under one volume's name (kubelet, desired state of the volume manager)."""
    first: dict[str, str] = {}
    for index, volume in enumerate(volumes):
        claim = str((volume.get("persistentVolumeClaim") or {}).get("claimName") or "")
        if claim and claim in first:
            message = f"volume {first[claim]!r} is of this claim already, and a second one is never mounted"
            passes = f"one volume, mounted as often as needed, with subPath: {first[claim]}"
            where = f"{path}[{index}].persistentVolumeClaim.claimName"
            yield Fault(where, "claim-twice", message, claim, passes, waivable=True)
        first.setdefault(claim, str(volume.get("name") or ""))


def is_dropped(volume: Mapping[str, Any]) -> bool:
    """Whether the server drops a volume, and every mount of it, without a word."""
    return "image" in volume


def _source(path: str, kind: str, source: Mapping[str, Any]) -> Iterator[Fault]:
    yield from forms.required(path, source, *_NEEDS.get(kind, ()))
    if (more := _MORE.get(kind)) is not None:
        yield from more(path, source)


def _mode(path: str, value: int | None) -> Iterator[Fault]:
    if value is not None and not 0 <= value <= 0o777:
        yield Fault(path, "out-of-range", "from 0 to 0777 (511)", value)


def _partition(path: str, value: int | None) -> Iterator[Fault]:
    if value is not None and not 0 <= value <= 255:
        yield Fault(path, "out-of-range", "from 0 to 255", value)


def _empty_dir(path: str, source: Mapping[str, Any]) -> Iterator[Fault]:
    limit = amount_of(source.get("sizeLimit"))
    if limit is not None and limit < 0:
        yield Fault(f"{path}.sizeLimit", "quantity", "at least 0", source["sizeLimit"])


def _host_path(path: str, source: Mapping[str, Any]) -> Iterator[Fault]:
    if ".." in (source.get("path") or "").split("/"):
        yield Fault(f"{path}.path", "path-form", "without '..'", source["path"])


def _items(path: str, source: Mapping[str, Any]) -> Iterator[Fault]:
    for index, item in enumerate(source.get("items") or ()):
        here = f"{path}.items[{index}]"
        yield from forms.required(here, item, "key")
        yield from forms.local_path(f"{here}.path", item.get("path") or "")
        yield from _mode(f"{here}.mode", item.get("mode"))


def _config_map(path: str, source: Mapping[str, Any]) -> Iterator[Fault]:
    yield from forms.required(path, source, "name")
    yield from _items(path, source)
    yield from _mode(f"{path}.defaultMode", source.get("defaultMode"))


def _secret(path: str, source: Mapping[str, Any]) -> Iterator[Fault]:
    yield from forms.required(path, source, "secretName")
    yield from _items(path, source)
    yield from _mode(f"{path}.defaultMode", source.get("defaultMode"))


def _downward(path: str, source: Mapping[str, Any]) -> Iterator[Fault]:
    for index, item in enumerate(source.get("items") or ()):
        here = f"{path}.items[{index}]"
        yield from forms.local_path(f"{here}.path", item.get("path") or "")
        yield from _mode(f"{here}.mode", item.get("mode"))
        field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
        if (field is None) == (resource is None):
            yield Fault(here, "one-of", "exactly one of fieldRef and resourceFieldRef")
        if field is not None:
            yield from field_faults(f"{here}.fieldRef", field, FILE_FIELDS)
        elif resource is not None:
            yield from resource_field_faults(f"{here}.resourceFieldRef", resource, file=True)
    yield from _mode(f"{path}.defaultMode", source.get("defaultMode"))


def _projected(path: str, source: Mapping[str, Any]) -> Iterator[Fault]:
    yield from _mode(f"{path}.defaultMode", source.get("defaultMode"))
    taken: set[str] = set()
    for index, projection in enumerate(source.get("sources") or ()):
        here = f"{path}.sources[{index}]"
        yield from _projection(here, projection)
        for kind in ("secret", "configMap", "downwardAPI"):
            for place, item in enumerate((projection.get(kind) or {}).get("items") or ()):
                if (name := item.get("path") or "") and name in taken:
                    where = f"{here}.{kind}.items[{place}].path"
                    yield Fault(where, "duplicate", "is another item's path", name, "each once")
                taken.add(name)


def _projection(path: str, projection: Mapping[str, Any]) -> Iterator[Fault]:
    for kind, gate in (
        ("clusterTrustBundle", "ClusterTrustBundleProjection"),
        ("podCertificate", "PodCertificateRequest"),
    ):
        if kind in projection:
            message = f"is dropped without a word while the feature gate {gate} is off, as it is by default"
            yield Fault(f"{path}.{kind}", "dropped-field", message, passes="remove it", waivable=True)
    kinds = [
        kind for kind in ("secret", "configMap", "downwardAPI", "serviceAccountToken") if kind in projection
    ]
    if len(kinds) > 1:
        yield Fault(path, "one-of", "at most one source", ", ".join(kinds))
    for kind in ("secret", "configMap"):
        if (source := projection.get(kind)) is not None:
            yield from forms.required(f"{path}.{kind}", source, "name")
            yield from _items(f"{path}.{kind}", source)
    if (source := projection.get("downwardAPI")) is not None:
        yield from _downward(f"{path}.downwardAPI", source)
    if (token := projection.get("serviceAccountToken")) is not None:
        here = f"{path}.serviceAccountToken"
        yield from forms.local_path(f"{here}.path", token.get("path") or "")
        seconds = token.get("expirationSeconds")
        if seconds is not None and not 600 <= seconds <= 2**32:
            yield Fault(f"{here}.expirationSeconds", "out-of-range", f"from 600 to {2**32}", seconds)


def _nfs(path: str, source: Mapping[str, Any]) -> Iterator[Fault]:
    if (given := source.get("path")) and not given.startswith("/"):
        yield Fault(f"{path}.path", "path-form", "an absolute path", given, f"/{given}")


def _csi(path: str, source: Mapping[str, Any]) -> Iterator[Fault]:
    driver = source.get("driver") or ""
    yield from forms.subdomain(f"{path}.driver", driver.lower())
    if len(driver) > 63:
        yield Fault(f"{path}.driver", "too-long", "at most 63 characters", len(driver))
    if (secret := source.get("nodePublishSecretRef")) is not None:
        yield from forms.subdomain(f"{path}.nodePublishSecretRef.name", secret.get("name") or "")


def _ephemeral(path: str, source: Mapping[str, Any]) -> Iterator[Fault]:
    template = source.get("volumeClaimTemplate")
    if template is None:
        yield Fault(f"{path}.volumeClaimTemplate", "required", "is required")
        return
    here, meta = f"{path}.volumeClaimTemplate", template.get("metadata") or {}
    yield from label_faults(f"{here}.metadata.labels", meta.get("labels"))
    yield from annotation_faults(f"{here}.metadata.annotations", meta.get("annotations"))
    for name in ("name", "namespace", "finalizers"):
        if meta.get(name):
            yield Fault(
                f"{here}.metadata.{name}",
                "ephemeral-claim",
                "only labels and annotations",
                meta[name],
                "remove it",
            )
    yield from claim_spec_faults(f"{here}.spec", template.get("spec") or {})


def _git(path: str, source: Mapping[str, Any]) -> Iterator[Fault]:
    yield from forms.descending(f"{path}.directory", source.get("directory") or "")


def _disk(path: str, source: Mapping[str, Any]) -> Iterator[Fault]:
    yield from _partition(f"{path}.partition", source.get("partition"))


def _iscsi(path: str, source: Mapping[str, Any]) -> Iterator[Fault]:
    yield from _partition(f"{path}.lun", source.get("lun"))
    for name in ("iqn", "initiatorName"):
        given = source.get(name)
        if given is None or (name == "iqn" and not given):
            continue
        form = {"iqn": _IQN.search, "eui": _EUI.fullmatch, "naa": _NAA.fullmatch}.get(given[:3])
        if form is None or form(given) is None:
            message = "a name in the form iqn..., eui... or naa..."
            yield Fault(
                f"{path}.{name}", "iscsi-name", message, given, "such as iqn.2001-04.com.example:storage"
            )
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and source.get("secretRef") is None:
        yield Fault(f"{path}.secretRef", "required", "is required with CHAP")


def _fibre(path: str, source: Mapping[str, Any]) -> Iterator[Fault]:
    if bool(source.get("targetWWNs")) == bool(source.get("wwids")):
        yield Fault(path, "one-of", "exactly one of targetWWNs and wwids")
    if source.get("targetWWNs"):
        if source.get("lun") is None:
            yield Fault(f"{path}.lun", "required", "is required with targetWWNs")
        yield from _partition(f"{path}.lun", source.get("lun"))


def _azure_disk(path: str, source: Mapping[str, Any]) -> Iterator[Fault]:
    yield from forms.one_of(
        f"{path}.cachingMode", source.get("cachingMode"), ("None", "ReadOnly", "ReadWrite")
    )
    kind, uri = source.get("kind", "Shared"), source.get("diskURI") or ""
    yield from forms.one_of(f"{path}.kind", kind, ("Dedicated", "Managed", "Shared"))
    begins = "/subscriptions/" if kind == "Managed" else "https://"
    if uri and not uri.startswith(begins):
        yield Fault(f"{path}.diskURI", "disk-uri", f"begins with {begins} for kind {kind}", uri)


def _flex(path: str, source: Mapping[str, Any]) -> Iterator[Fault]:
    for name in source.get("options") or {}:
        domain = "." + name.partition("/")[0].lower()
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            yield Fault(f"{path}.options.{name}", "reserved", "kubernetes.io and k8s.io are reserved", name)


def _quobyte(path: str, source: Mapping[str, Any]) -> Iterator[Fault]:
    registry, tenant = source.get("registry") or "", source.get("tenant") or ""
    if len(tenant) > 64:
        yield Fault(f"{path}.tenant", "too-long", "at most 64 characters", len(tenant))
    elif registry and not all(_HOST_PORT.fullmatch(pair) for pair in registry.split(",")):
        yield Fault(f"{path}.registry", "host-port", "host:port, several joined by ','", registry)


def _flocker(path: str, source: Mapping[str, Any]) -> Iterator[Fault]:
    name, identity = source.get("datasetName") or "", source.get("datasetUUID") or ""
    if bool(name) == bool(identity):
        yield Fault(path, "one-of", "exactly one of datasetName and datasetUUID")
    if "/" in name:
        yield Fault(f"{path}.datasetName", "name-form", "without '/'", name)


def _storageos(path: str, source: Mapping[str, Any]) -> Iterator[Fault]:
    for name in ("volumeName", "volumeNamespace"):
        if source.get(name):
            yield from forms.label(f"{path}.{name}", source[name])
    yield from _secret_ref(path, source)


def _secret_ref(path: str, source: Mapping[str, Any]) -> Iterator[Fault]:
    if (secret := source.get("secretRef")) is not None:
        yield from forms.required(f"{path}.secretRef", secret, "name")


_MORE: dict[str, Callable[[str, Mapping[str, Any]], Iterator[Fault]]] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "configMap": _config_map,
    "secret": _secret,
    "downwardAPI": _downward,
    "projected": _projected,
    "nfs": _nfs,
    "csi": _csi,
    "ephemeral": _ephemeral,
    "gitRepo": _git,
    "awsElasticBlockStore": _disk,
    "gcePersistentDisk": _disk,
    "iscsi": _iscsi,
    "fc": _fibre,
    "azureDisk": _azure_disk,
    "flexVolume": _flex,
    "quobyte": _quobyte,
    "flocker": _flocker,
    "storageos": _storageos,
    "cinder": _secret_ref,
}
