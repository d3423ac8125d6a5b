"""Strict validation of Kubernetes objects: what an API server would prune or ignore in silence is an error here.

Custom resources are held against the CustomResourceDefinitions in the folder that CRD_DIR names; it may hold CRDs as
published, or the output of `kubectl get crd -o yaml`. Everything else is held against the core schemas that
kubernetes-validate carries. CEL rules and defaults are not evaluated.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from jsonschema import Draft202012Validator

from tests.yaml_files import documents

KUBERNETES_VERSION = "1.34"
CUSTOM_GROUPS = ("kueue.x-k8s.io", "jobset.x-k8s.io", "ray.io")

# It reads the schemas of a version, 2 MB, for every object.
kubernetes_validate.utils.schema_contents = cache(kubernetes_validate.utils.schema_contents)

Schema = dict[str, Any]

# metadata of a whole object: apimachinery's ObjectMeta, as far as anybody writes it.
_TEXTS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
_OBJECT_META: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "maxLength": 253, "pattern": r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"},
        "generateName": {"type": "string", "maxLength": 253},
        "namespace": {"type": "string", "maxLength": 63},
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "finalizers": {"type": "array", "items": {"type": "string"}},
    },
}


def errors_of(object_: Mapping[str, Any]) -> list[str]:
    """Everything a strict API server would object to, each as `path: what`. Skips the test where CRD_DIR is needed."""
    group = str(object_.get("apiVersion", "")).rpartition("/")[0]
    if group in CUSTOM_GROUPS:
        return _errors(_custom_validator(crd_folder(), str(object_["apiVersion"]), str(object_["kind"])), object_)
    try:
        kubernetes_validate.validate(dict(object_), KUBERNETES_VERSION, strict=True)
    except kubernetes_validate.ValidationError as error:
        return [f"{'.'.join(map(str, error.absolute_path))}: {error.message}"]
    except kubernetes_validate.SchemaNotFoundError as error:
        return [f"kind: no Kubernetes {KUBERNETES_VERSION} schema for {error.api_version} {error.kind}"]
    return []


def crd_folder() -> Path:
    """The folder that CRD_DIR names. Skips the test where there is none."""
    folder = os.environ.get("CRD_DIR")
    if not folder:
        pytest.skip("CRD_DIR is not set: name the folder with the CRDs of Kueue, JobSet and KubeRay")
    path = Path(folder)
    # CI names it from the root of the repository.
    return path if path.is_absolute() else Path(__file__).resolve().parent.parent / path


def _errors(validator: Draft202012Validator, object_: Mapping[str, Any]) -> list[str]:
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in validator.iter_errors(object_)]


@cache
def _custom_validator(folder: Path, api_version: str, kind: str) -> Draft202012Validator:
    return Draft202012Validator(_whole_object(schema_of(folder, api_version, kind)))


def schema_of(folder: Path, api_version: str, kind: str) -> Schema:
    """The schema of a custom resource as its CustomResourceDefinition has it."""
    group, version = api_version.split("/")
    for crd in _crds(folder):
        if crd["spec"]["group"] == group and crd["spec"]["names"]["kind"] == kind:
            for described in crd["spec"]["versions"]:
                if described["name"] == version and described["served"]:
                    return described["schema"]["openAPIV3Schema"]  # type: ignore[no-any-return]
            raise LookupError(f"{kind} is not served as {api_version}")
    raise LookupError(f"{folder} has no CustomResourceDefinition of {kind} in {group}")


@cache
def _crds(folder: Path) -> list[dict[str, Any]]:
    files = sorted(file for file in folder.iterdir() if re.fullmatch(r".*\.ya?ml", file.name))
    crds = [crd for file in files for crd in _crds_of(file)]
    if not crds:
        raise LookupError(f"CRD_DIR {folder} holds no CustomResourceDefinition")
    return crds


def _crds_of(file: Path) -> Iterator[dict[str, Any]]:
    for document in documents(file):
        if isinstance(document, dict):
            items = document["items"] if document.get("kind") == "List" else [document]
            yield from (item for item in items if item.get("kind") == "CustomResourceDefinition")


def _whole_object(schema: Schema) -> Schema:
    closed = strict(schema)
    closed["properties"] = {
        **closed.get("properties", {}),
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": _OBJECT_META,
    }
    closed["required"] = sorted({*closed.get("required", ()), "apiVersion", "kind", "metadata"})
    return closed


def strict(schema: Schema) -> Schema:
    """A structural schema with every object closed, unless it says that unknown fields are preserved."""
    closed = {key: value for key, value in schema.items() if not key.startswith("x-")}
    if str(schema.get("pattern", "")).startswith("^(?i)"):
        # Go takes flags anywhere in a pattern, Python at its beginning alone.
        closed["pattern"] = "(?i)^" + schema["pattern"].removeprefix("^(?i)")
    if schema.get("x-kubernetes-int-or-string"):
        closed["type"] = ["integer", "string"]
    if schema.get("nullable"):
        closed["type"] = [
            *([closed["type"]] if isinstance(closed.get("type"), str) else closed.get("type", [])),
            "null",
        ]
    if "properties" in schema:
        closed["properties"] = {name: strict(inner) for name, inner in schema["properties"].items()}
    if isinstance(schema.get("additionalProperties"), dict):
        closed["additionalProperties"] = strict(schema["additionalProperties"])
    elif schema.get("type") == "object" and not schema.get("x-kubernetes-preserve-unknown-fields"):
        closed.setdefault("additionalProperties", False)
    if "items" in schema:
        closed["items"] = strict(schema["items"])
    return closed
