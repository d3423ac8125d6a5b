"""Whether NetworkPolicies let a connection through, as a plug-in that knows pods by label and the rest by address.

https://kubernetes.io/docs/concepts/services-networking/network-policies/
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any

Object = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A pod, in a namespace; or, without one, a machine with an address."""

    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    address: str = ""


def allowed(policies: Iterable[Object], source: Peer, target: Peer, port: int, protocol: str = "TCP") -> bool:
    """Whether a connection from `source` to a port of `target` is let out, and let in."""
    policies = [*policies]
    return _passes(policies, "Egress", source, target, port, protocol) and _passes(
        policies, "Ingress", target, source, port, protocol
    )


def _passes(policies: list[Object], way: str, of: Peer, other: Peer, port: int, protocol: str) -> bool:
    """What no policy selects is open; of several, one has to let it through."""
    applied = [
        item["spec"]
        for item in policies
        if item["metadata"]["namespace"] == of.namespace
        and way in item["spec"]["policyTypes"]
        and _matches(item["spec"]["podSelector"], of.labels)
    ]
    rules = [rule for spec in applied for rule in spec.get(way.lower(), [])]
    return not applied or any(
        _has_port(rule, port, protocol)
        and any(_is(peer, of.namespace, other) for peer in rule["to" if way == "Egress" else "from"])
        for rule in rules
    )


def _has_port(rule: Object, port: int, protocol: str) -> bool:
    ports = rule.get("ports")
    return not ports or {"port": port, "protocol": protocol} in ports


def _is(peer: Object, own_namespace: str, other: Peer) -> bool:
    if block := peer.get("ipBlock"):
        inside = bool(other.address) and ip_address(other.address) in ip_network(block["cidr"])
        return inside and not any(
            ip_address(other.address) in ip_network(network) for network in block.get("except", [])
        )
    if not other.namespace:
        return False
    if "namespaceSelector" in peer:
        namespace = {"kubernetes.io/metadata.name": other.namespace}
        return _matches(peer["namespaceSelector"], namespace) and _matches(peer.get("podSelector", {}), other.labels)
    return other.namespace == own_namespace and _matches(peer["podSelector"], other.labels)


def _matches(selector: Object, labels: Mapping[str, str]) -> bool:
    exact = selector.get("matchLabels", {}).items() <= {**labels}.items()
    return exact and all(
        expression["operator"] == "In" and labels.get(expression["key"]) in expression["values"]
        for expression in selector.get("matchExpressions", [])
    )
