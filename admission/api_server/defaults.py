"""What the mutating webhooks write into a manifest before the API server holds it against the schema and the rules.

Only what a rule asks about: JobSet 0.12.0, pkg/webhooks/jobset_webhook.go, Default. Kueue's fill in the queue and
suspend (pkg/controller/jobframework/defaults.go), which `route` knows; KubeRay 1.7.0 has no mutating webhook. What the
schemas themselves fill in is not required in the table of fields.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any


def with_defaults(manifest: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """A copy with the defaults in it; what is malformed stays as it is."""
    whole = copy.deepcopy(dict(manifest))
    spec = whole.get("spec")
    if kind == "JobSet" and isinstance(spec, dict):
        _default(spec, "successPolicy", {"operator": "All"})
        _default(spec, "startupPolicy", {"startupPolicyOrder": "AnyOrder"})
        for job in _mappings(spec.get("replicatedJobs")):
            inner = _inner(job, "template", "spec")
            _default(inner, "completionMode", "Indexed")
            pod = _inner(inner, "template", "spec")
            if pod.get("restartPolicy") in (None, ""):
                pod["restartPolicy"] = "OnFailure"
        policy = spec.get("failurePolicy")
        for index, rule in enumerate(_mappings(policy.get("rules") if isinstance(policy, dict) else None)):
            if rule.get("name") in (None, ""):
                rule["name"] = f"failurePolicyRule{index}"
    return whole


def _default(holder: dict[str, Any], key: str, value: object) -> None:
    if holder.get(key) is None:
        holder[key] = value


def _inner(holder: dict[str, Any], *keys: str) -> dict[str, Any]:
    """The mapping at the end of the keys, or a new one where there is none."""
    inner: Any = holder
    for key in keys:
        inner = inner.get(key) if isinstance(inner, dict) else None
    return inner if isinstance(inner, dict) else {}


def _mappings(items: object) -> Iterator[dict[str, Any]]:
    """The mappings of a list. What is none keeps its place."""
    for item in items if isinstance(items, list) else []:
        yield item if isinstance(item, dict) else {}
