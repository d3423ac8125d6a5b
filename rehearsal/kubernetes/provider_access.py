"""How a provider reaches a cluster: by the address and token in its `provider` block."""

from __future__ import annotations

from rehearsal.cloud import Attributes
from rehearsal.google.gke import dns_endpoint
from rehearsal.google.names import region_of
from rehearsal.google.network import CLUSTER
from rehearsal.google.permissions import account_of, expired
from rehearsal.kubernetes.api import Api
from rehearsal.kubernetes.cluster_access import api_of
from rehearsal.terraform.resource_type import Client, Refusal
from rehearsal.terraform.values import Unknown, block_at

UNAUTHORIZED = "Unauthorized"
_PLUGIN_API = "client.authentication.k8s.io/v1beta1"


def cluster_api(client: Client, settings: Attributes) -> Api:
    """The API server that `settings` (host, token) lead to; raises Refusal in the words of Go's HTTP client.

    A provider without a host talks to localhost, which is how a missing cluster shows in practice.
    """
    host, token, plugin = settings.get("host"), settings.get("token"), block_at(settings, "exec")
    if isinstance(host, Unknown) or isinstance(token, Unknown):
        raise Refusal("cannot create REST client: no client config", "The provider's host is known only after apply.")
    if not host:
        raise Refusal('Get "http://localhost/api": dial tcp [::1]:80: connect: connection refused')
    name = str(host).removeprefix("https://").rstrip("/")
    for item in client.cloud.find(CLUSTER):
        if name == dns_endpoint(item.name, region_of(item.attributes.get("location"))):
            _dns_endpoint_is_open(item.attributes, str(host))
        elif name != item.attributes.get("endpoint"):
            continue
        if plugin:
            return api_of(client.cloud, item.name, _account_of_plugin(client, plugin, str(host)))
        account = account_of(str(token))
        if account is None:
            raise Refusal(f'Get "{host}/api": {UNAUTHORIZED}')
        if expired(client.cloud, str(token)):
            raise Refusal(UNAUTHORIZED)
        return api_of(client.cloud, item.name, account)
    raise Refusal(f'Get "{host}/api": dial tcp: lookup {name}: no such host')


def _account_of_plugin(client: Client, plugin: Attributes, host: str) -> str:
    """gke-gcloud-auth-plugin gives a new token of the account that calls Google, at every call.

    https://cloud.google.com/kubernetes-engine/docs/how-to/cluster-access-for-kubectl#install_plugin
    """
    command, version = plugin.get("command"), plugin.get("api_version")
    if command != "gke-gcloud-auth-plugin":
        raise Refusal(f'Get "{host}/api": getting credentials: exec: executable {command} not found')
    if version != _PLUGIN_API:
        raise Refusal(
            f'Get "{host}/api": getting credentials: exec plugin is configured to use API version {version}, plugin '
            f"returned version {_PLUGIN_API}"
        )
    return client.account


def _dns_endpoint_is_open(cluster: Attributes, host: str) -> None:
    """https://cloud.google.com/kubernetes-engine/docs/how-to/latest/network-isolation#dns-based-endpoint"""
    config = block_at(cluster, "control_plane_endpoints_config.dns_endpoint_config")
    if config.get("allow_external_traffic") is not True:
        raise Refusal(f'Get "{host}/api": Forbidden: external traffic is not allowed to this DNS endpoint')
