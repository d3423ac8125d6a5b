"""Enables the project's Google APIs and waits until they answer."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence

from environment.services import PREFLIGHT_SERVICES, SERVICES
from environment.settings.model import Settings
from tpuenv.failure import Failed
from tpuenv.google.clients import Clients

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # as in tpuenv.google.clients
    from google.cloud.service_usage_v1 import State

# Both limits are per request. https://cloud.google.com/service-usage/docs/reference/rest/v1/services/batchEnable
_BATCH = 20

_ROLE = "roles/serviceusage.serviceUsageAdmin"


def enable_apis(clients: Clients, settings: Settings, *, dry_run: bool) -> tuple[str, list[str]]:
    """The project's number, and the APIs that were off and now are on (or would be). Raises Failed."""
    purposes = {**SERVICES, **PREFLIGHT_SERVICES}
    number, off = _read_states(clients, list(purposes))
    number = _checked(number, settings)
    if dry_run:
        for service in off:
            clients.say(f"would enable {service}: {purposes[service]}")
        return number, off
    for batch in _batches(off):
        clients.say(f"Enabling {', '.join(batch)}")
        _enable(clients, batch)
    clients.wait("enabled", lambda: _read_states(clients, off)[1])
    clients.wait("answered for", lambda: _not_answering(clients, settings))
    return number, off


def _read_states(clients: Clients, services: Sequence[str]) -> tuple[str, list[str]]:
    """The project's number, which is part of every answer, and the services that are not enabled."""
    number, off = "", []
    parent = f"projects/{clients.project_id}"
    for batch in _batches(services):
        with clients.asking("read which APIs are enabled", permission="serviceusage.services.get", role=_ROLE):
            answer = clients.services().batch_get_services(
                request={"parent": parent, "names": [f"{parent}/services/{service}" for service in batch]},
                retry=clients.retry,
                timeout=clients.patience.answer,
            )
        states = {service.name.rpartition("/")[2]: service for service in answer.services}
        off += [name for name in batch if name not in states or states[name].state != State.ENABLED]
        for service in answer.services:
            if match := re.fullmatch("projects/([0-9]+)", service.parent):
                number = match[1]
    return number, off


def _checked(number: str, settings: Settings) -> str:
    configured = settings.project_number
    if not number and not configured:
        raise Failed("PROJECT_NUMBER: Google's answer does not hold it; set it, `gcloud projects describe` shows it")
    if number and configured and number != configured:
        raise Failed(
            f"PROJECT_NUMBER: '{configured}' is not the number of project '{settings.project_id}', which is {number}; "
            "correct it, or leave it empty"
        )
    return number or configured


def _enable(clients: Clients, batch: Sequence[str]) -> None:
    """One request; the answer is an operation that takes seconds to minutes."""
    with clients.asking("enable APIs", permission="serviceusage.services.enable", role=_ROLE):
        operation = clients.services().batch_enable_services(
            request={"parent": f"projects/{clients.project_id}", "service_ids": list(batch)},
            retry=clients.retry,
            timeout=clients.patience.answer,
        )
        clients.wait("enabled", lambda: [] if operation.done(retry=clients.retry) else batch)  # type: ignore[no-untyped-call]
        if error := operation.exception():  # type: ignore[no-untyped-call]
            raise error


def _not_answering(clients: Clients, settings: Settings) -> list[str]:
    """The services that still say they are not enabled.

    A newly enabled API may refuse requests for some minutes, and the Terraform provider does not repeat them: so every
    API that it calls gets a request that reads something. Any other answer, a refusal too, counts as an answer.
    """
    not_answering = []
    for service, url in _requests(clients, settings).items():
        with clients.asking(f"reach {service}", permission="serviceusage.services.use", role=_ROLE):
            answer = clients.retry(clients.session.get)(url, timeout=clients.patience.answer)
        busy = answer.status_code == 429 or answer.status_code >= 500
        if busy or (answer.status_code == 403 and re.search("SERVICE_DISABLED|accessNotConfigured", answer.text)):
            not_answering.append(service)
    return not_answering


def _requests(clients: Clients, settings: Settings) -> dict[str, str]:
    """A URL of every service that Terraform's provider calls."""
    project, region, board = settings.project_id, settings.region, settings.tensorboard_region
    paths = {
        "cloudresourcemanager.googleapis.com": f"/v3/projects/{project}",
        "compute.googleapis.com": f"/compute/v1/projects/{project}/regions/{region}",
        "container.googleapis.com": f"/v1/projects/{project}/locations/{region}/clusters",
        "iam.googleapis.com": f"/v1/projects/{project}/serviceAccounts?pageSize=1",
        "artifactregistry.googleapis.com": f"/v1/projects/{project}/locations/{region}/repositories?pageSize=1",
        "aiplatform.googleapis.com": f"/v1/projects/{project}/locations/{board}/tensorboards?pageSize=1",
    }
    # Vertex AI has one endpoint a region.
    hosts = {"aiplatform.googleapis.com": f"{board}-aiplatform.googleapis.com"}
    return {service: clients.api_url(hosts.get(service, service)) + path for service, path in paths.items()}


def _batches(services: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(services), _BATCH):
        yield services[start : start + _BATCH]
