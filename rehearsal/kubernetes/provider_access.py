"""How a provider reaches a cluster: by the address in its `provider` block, with a token of the program named there."""

from __future__ import annotations

from rehearsal.cloud import Attributes
from rehearsal.google.gke import dns_endpoint
from rehearsal.google.names import region_of
from rehearsal.google.network import CLUSTER
from rehearsal.kubernetes.api import Api
from rehearsal.kubernetes.cluster_access import api_of
from rehearsal.terraform.resource_type import Client, Refusal
from rehearsal.terraform.values import Unknown, block_at

UNAUTHORIZED = "Unauthorized"
_TOKENS = {"command": "tpuenv", "args": ["token"], "api_version": "client.authentication.k8s.io/v1"}


def cluster_api(client: Client, settings: Attributes) -> Api:
    """The API server that `settings` (host, exec) lead to; raises Refusal in the words of Go's HTTP client.

    A provider without a host talks to localhost, which is how a missing cluster shows in practice.
    """
    host = settings.get("host")
    if isinstance(host, Unknown):
        raise Refusal("cannot create REST client: no client config", "The provider's host is known only after apply.")
    if not host:
        raise Refusal('Get "http://localhost/api": dial tcp [::1]:80: connect: connection refused')
    name = str(host).removeprefix("https://").rstrip("/")
    for item in client.cloud.find(CLUSTER):
        if name == dns_endpoint(item.name, region_of(item.attributes.get("location"))):
            _dns_endpoint_is_open(item.attributes, str(host))
        elif name != item.attributes.get("endpoint"):
            continue
        _check_tokens(block_at(settings, "exec"), str(host))
        return api_of(client.cloud, item.name, client.account)
    raise Refusal(f'Get "{host}/api": dial tcp: lookup {name}: no such host')


def _check_tokens(program: Attributes, host: str) -> None:
    """`tpuenv token` gives a new token of the account that calls Google whenever it is asked. It is not run here: what
    it prints is tried on the fake cluster in tests/tpuenv/test_token.py.

    https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
    """
    if not program:
        raise Refusal(f'Get "{host}/api": {UNAUTHORIZED}')
    command, version = program.get("command"), program.get("api_version")
    if command != _TOKENS["command"]:
        raise Refusal(f'Get "{host}/api": getting credentials: exec: executable {command} not found')
    if program.get("args") != _TOKENS["args"]:
        raise Refusal(f'Get "{host}/api": getting credentials: exec: executable {command} failed with exit code 2')
    if version != _TOKENS["api_version"]:
        raise Refusal(
            f'Get "{host}/api": getting credentials: exec plugin is configured to use API version {version}, plugin '
            f"returned version {_TOKENS['api_version']}"
        )


def _dns_endpoint_is_open(cluster: Attributes, host: str) -> None:
    """https://cloud.google.com/kubernetes-engine/docs/how-to/latest/network-isolation#dns-based-endpoint"""
    config = block_at(cluster, "control_plane_endpoints_config.dns_endpoint_config")
    if config.get("allow_external_traffic") is not True:
        raise Refusal(f'Get "{host}/api": Forbidden: external traffic is not allowed to this DNS endpoint')
