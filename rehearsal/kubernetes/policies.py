"""ValidatingAdmissionPolicies that are bound to the namespaces of teams: what they refuse, by admission/boundary.

Their CEL is not evaluated here: `make test-cluster` holds the two against each other on a real API server.
"""

from __future__ import annotations

from admission.boundary import boundary_of, refusals_of
from rehearsal.kubernetes.objects import KIND, Object, Objects
from rehearsal.kubernetes.resources import NAMESPACE
from rehearsal.kubernetes.status import Status

_POLICY, _BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"


def review(api: Objects, body: Object, *, operation: str) -> None:
    """Raises Status for an object that a policy of its namespace refuses."""
    namespace = str(body["metadata"].get("namespace") or "")
    live = (api.cloud.get(KIND, api.key(NAMESPACE, "", namespace)) if namespace else None) or {}
    labels = live.get("metadata", {}).get("labels") or {}
    plural = api.resource(body["apiVersion"], body["kind"]).plural
    for name in _bound(api, plural, operation, labels):
        if refused := next(refusals_of(body, boundary_of(live)), ""):
            words = f"{_POLICY} '{name}' with binding '{name}' denied request: {refused}"
            raise Status(422, f'{plural} "{body["metadata"]["name"]}" is forbidden: {words}')


def _bound(api: Objects, plural: str, operation: str, labels: Object) -> list[str]:
    """The policies that watch a kind of objects, in a namespace with those labels."""
    if not labels:
        return []
    objects = api.of_kind(_POLICY, _BINDING)
    watched = {
        item["metadata"]["name"]
        for item in objects
        if item["kind"] == _POLICY
        and any(
            plural in rule["resources"] and operation in rule["operations"]
            for rule in item["spec"]["matchConstraints"]["resourceRules"]
        )
    }
    return [
        item["spec"]["policyName"]
        for item in objects
        if item["kind"] == _BINDING and item["spec"]["policyName"] in watched and _selects(item, labels)
    ]


def _selects(binding: Object, labels: Object) -> bool:
    """A binding of ours selects namespaces by labels that exist."""
    selector = binding["spec"]["matchResources"]["namespaceSelector"]
    return all(
        expression["operator"] == "Exists" and expression["key"] in labels
        for expression in selector["matchExpressions"]
    )
