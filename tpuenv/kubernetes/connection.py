"""Finds the cluster of an environment: by its DNS endpoint, with the Google credentials of this machine.

https://cloud.google.com/kubernetes-engine/docs/concepts/network-isolation#dns-based_endpoint
"""

from __future__ import annotations

import os

import requests
from google.api_core import exceptions

from environment import Environment
from tpuenv.failure import Failed
from tpuenv.google.clients import Clients, connect_without_quota_project, notice
from tpuenv.kubernetes.client import Cluster

# An address in place of https://{endpoint}, which it may hold: of the fake cluster of a rehearsal. Without {endpoint}
# it is an API server that asks for no credentials, such as `kubectl proxy` for any kubeconfig (docs/verify.md).
ADDRESS = "TPUENV_CLUSTER_ENDPOINT"

_ROLE = "roles/container.clusterViewer"


def reached_without_google() -> bool:
    """Whether the address is that of an API server that asks for no credentials."""
    return "{endpoint}" not in _address()


def _address() -> str:
    return os.environ.get(ADDRESS) or "https://{endpoint}"


def connect(environment: Environment) -> Cluster:
    """The environment's cluster. Raises Failed where there is none, or no way to it."""
    address, name = _address(), environment.names.cluster
    if reached_without_google():
        return Cluster(address=address.rstrip("/"), name=name, session=requests.Session())
    clients = connect_without_quota_project(environment.settings.project_id)
    endpoint = _dns_endpoint(clients, environment)
    return Cluster(
        address=address.replace("{endpoint}", endpoint),
        name=name,
        session=clients.session,
        say=notice,
        patience=clients.patience,
    )


def _dns_endpoint(clients: Clients, environment: Environment) -> str:
    """https://cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters/get"""
    settings, name = environment.settings, environment.names.cluster
    full_name = f"projects/{settings.project_id}/locations/{settings.region}/clusters/{name}"
    with clients.asking(f"read cluster {name}", permission="container.clusters.get", role=_ROLE):
        try:
            answer = clients.retry(clients.request)(
                "GET", f"{clients.api_url('container.googleapis.com')}/v1/{full_name}"
            ).json()
        except exceptions.NotFound as error:
            raise Failed(
                f"cluster: there is no cluster {name} in region {settings.region} of project {settings.project_id}; "
                "run `tpuenv deploy`, or correct PROJECT_ID, REGION and RESOURCE_PREFIX in vars.env"
            ) from error
        except (ValueError, RecursionError) as error:
            raise Failed(f"cluster: Google's answer about {name} is not JSON; run this again") from error
    try:
        endpoint = answer["controlPlaneEndpointsConfig"]["dnsEndpointConfig"]["endpoint"]
    except (KeyError, TypeError):
        endpoint = ""
    if not isinstance(endpoint, str) or not endpoint:
        raise Failed(f"cluster: {name} has no DNS endpoint; run `tpuenv deploy`, which gives it one")
    return endpoint
