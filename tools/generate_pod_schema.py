"""Writes jobset_steps/spec/schema/pod.json anew from a running API server.

    python -m tools.generate_pod_schema [KUBECONFIG]

Takes names, types, enums and the keys of lists of all that a pod template or a claim can hold from the server's OpenAPI
document, and nothing else. Metadata is taken as JobSet's CRD has it, which knows fewer fields.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from jobset_steps.clusters.kubernetes.client import Client

__all__ = ["main", "shrink"]

_ROOTS = ("io.k8s.api.core.v1.PodTemplateSpec", "io.k8s.api.core.v1.PersistentVolumeClaim")
_TARGET = Path(__file__).parents[1] / "jobset_steps" / "spec" / "schema" / "pod.json"
# What is left of ObjectMeta inside a CRD.
_EMBEDDED_METADATA = ("annotations", "finalizers", "labels", "name", "namespace")

_DROPPED = {"ImageVolumeSource": ("pullPolicy",), "Lifecycle": ("stopSignal",)}


def shrink(document: dict[str, Any]) -> dict[str, Any]:
    """Definitions reachable from the roots: each field's type."""
    schemas = document["components"]["schemas"]
    found: dict[str, Any] = {}
    open_ = list(_ROOTS)
    while open_:
        name = open_.pop()
        short = name.rsplit(".", 1)[1]
        if short in found:
            continue
        found[short] = {}
        for field, schema in sorted((schemas[name].get("properties") or {}).items()):
            if short != "ObjectMeta" or field in _EMBEDDED_METADATA:
                found[short][field] = _type(schema, open_, schemas)
        if short == "ObjectMeta":
            # JobSet's CRD does not mind one twice.
            found[short]["finalizers"] = {"list": "string"}
        # The server drops them while their feature gates are off, before it looks at values.
        for name in _DROPPED.get(short, ()):
            found[short][name] = "string"
    return {name: found[name] for name in sorted(found)}


def _type(schema: dict[str, Any], open_: list[str], schemas: dict[str, Any]) -> Any:
    refs = [part["$ref"] for part in schema.get("allOf", ()) if "$ref" in part]
    if "$ref" in schema or refs:
        name = (schema.get("$ref") or refs[0]).rsplit("/", 1)[1]
        target = schemas[name]
        if not target.get("properties"):
            return _scalar(name.rsplit(".", 1)[1], target)
        open_.append(name)
        return name.rsplit(".", 1)[1]
    if schema.get("type") == "array":
        listed = {"list": _type(schema["items"], open_, schemas)}
        if schema.get("x-kubernetes-list-type") in ("map", "set"):
            listed["keys"] = _keys(schema, schemas)
        return listed
    if schema.get("type") == "object":
        extra = schema.get("additionalProperties")
        return {"map": _type(extra, open_, schemas)} if extra else "any"
    if schema.get("enum"):
        return {"enum": sorted(value for value in schema["enum"] if value)}
    return _scalar("", schema)


def _keys(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """The fields by which items of a list must differ, with their defaults; none of them: by the whole item."""
    names = schema.get("x-kubernetes-list-map-keys") or ()
    item = schema["items"]
    refs = [part["$ref"] for part in (*item.get("allOf", ()), item) if "$ref" in part]
    fields = schemas[refs[0].rsplit("/", 1)[1]]["properties"] if refs else {}
    return {name: fields[name].get("default") for name in names}


def _scalar(name: str, schema: dict[str, Any]) -> str:
    """Quantities and int-or-strings are named; whole numbers have their size; what has no type can be anything."""
    if name in ("Quantity", "IntOrString", "Time", "MicroTime"):
        return name.lower()
    if schema.get("type") == "integer":
        return str(schema.get("format", "int64"))
    return str(schema.get("type", "any"))


def main() -> None:
    """Fetch and write."""
    client = Client(sys.argv[1] if len(sys.argv) > 1 else None)
    text = json.dumps(
        shrink(client.call("GET", "/openapi/v3/api/v1")), indent=0, sort_keys=True, separators=(",", ":")
    )
    _TARGET.write_text(text + "\n")


if __name__ == "__main__":
    main()
