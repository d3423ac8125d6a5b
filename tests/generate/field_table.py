"""Writes admission/api_server/fields.txt from the schemas in CRD_DIR: python -m tests.generate.field_table

The schema of JobSet holds those of a Job and a pod, so it speaks for plain Jobs too.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from admission.workload import API_VERSIONS
from tests.crd_schemas import crd_folder, schema_of

ROOT = Path(__file__).parent.parent.parent
TABLE = ROOT / "admission" / "api_server" / "fields.txt"

_RANGES = (("minimum", "minItems"), ("maximum", "maxItems"))
_SIMPLE = {"string": "", "boolean": "?"}


class _Types:
    """Types by what they hold, so that equal ones are one; named after the field that held them first."""

    def __init__(self) -> None:
        self.lines: dict[str, str] = {}  # fields -> name of the type

    def named(self, schema: dict[str, Any], name: str) -> str:
        required = {
            key for key in schema.get("required", ()) if "default" not in schema["properties"].get(key, {"default": 0})
        }
        fields = []
        for key, inner in sorted(schema["properties"].items()):
            kind = self._kind(inner, key)
            fields.append(f"{'!' if key in required else ''}{key}{kind}{_limits(inner)}")
        line = " ".join(fields)
        if line not in self.lines:
            taken = set(self.lines.values())
            proposed = name[0].upper() + name[1:]
            number = 2
            while proposed in taken:
                proposed = f"{name[0].upper()}{name[1:]}{number}"
                number += 1
            self.lines[line] = proposed
        return self.lines[line]

    def _kind(self, schema: dict[str, Any], name: str) -> str:
        if schema.get("x-kubernetes-int-or-string") and "pattern" in schema:
            return "~"
        if schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-int-or-string"):
            return "*"
        if schema.get("type") == "integer":
            return "#" if schema.get("format") == "int32" else "##"
        if "properties" in schema:
            return ":" + self.named(schema, name)
        if "items" in schema:
            return f"[{self._kind(schema['items'], name).removeprefix(':')}]"
        if isinstance(schema.get("additionalProperties"), dict):
            return f"{{{self._kind(schema['additionalProperties'], name).removeprefix(':')}}}"
        return _SIMPLE.get(schema.get("type", ""), "*")


def _limits(schema: dict[str, Any]) -> str:
    """What stands in <>."""
    if "enum" in schema:
        return f"<{'|'.join(schema['enum'])}>"
    lowest, highest = (schema.get(key, schema.get(other, "")) for key, other in _RANGES)
    range_ = f"{lowest}..{highest}" if (lowest, highest) != ("", "") else ""
    keys = "+".join(schema.get("x-kubernetes-list-map-keys", ()))
    if "items" in schema:
        return f"<{keys};{range_}>" if keys or range_ else ""
    return f"<{range_}>" if range_ else ""


def table() -> str:
    """The text of the file, from the CustomResourceDefinitions in CRD_DIR."""
    types = _Types()
    specs = {
        kind: schema_of(crd_folder(), api_version, kind)["properties"]["spec"]
        for kind, api_version in API_VERSIONS.items()
        if kind != "Job"
    }
    job = _inner(specs["JobSet"], "replicatedJobs", "template", "spec")
    types.named(_inner(job, "template", "spec"), "PodSpec")
    specs["Job"] = job
    tops = {kind: types.named(spec, f"{kind}Spec") for kind, spec in sorted(specs.items())}
    lines = [f"{kind}: apiVersion !kind metadata:ObjectMeta !spec:{top} status*" for kind, top in tops.items()]
    # Kubernetes 1.34: apimachinery's ObjectMeta, with what the API server fills in.
    lines.append(
        "ObjectMeta: annotations{} creationTimestamp deletionGracePeriodSeconds## deletionTimestamp finalizers[] "
        "generateName generation## labels{} managedFields[*] name namespace ownerReferences[*] resourceVersion "
        "selfLink uid"
    )
    lines += [f"{name}: {fields}" for fields, name in types.lines.items()]
    return "".join(f"{_wrapped(line)}\n" for line in lines)


def _inner(schema: dict[str, Any], *keys: str) -> dict[str, Any]:
    for key in keys:
        schema = schema["properties"][key]
        schema = schema.get("items", schema)
    return schema


def _wrapped(line: str) -> str:
    rows, row = [], ""
    for word in line.split(" "):
        if len(row) + len(word) >= 119:
            rows.append(row)
            row = " "
        row += f" {word}" if row else word
    return "\n".join([*rows, row])


if __name__ == "__main__":
    sys.exit(f"{TABLE} has {TABLE.write_text(table(), encoding='utf-8')} characters")
