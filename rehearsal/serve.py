"""The rehearsal's one process: the fake providers and the cloud's HTTP server, until its parent goes."""

from __future__ import annotations

import functools
import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import grpc

from rehearsal import http_server, started_processes
from rehearsal.cloud import Cloud
from rehearsal.cloudbuild import api
from rehearsal.google import artifact_registry_api, cluster_api, compute_api, http_access, list_apis, project_api
from rehearsal.google.cloud_storage_api import Storage
from rehearsal.kubernetes import server
from rehearsal.resource_types import DATA_SOURCES, RESOURCE_TYPES
from rehearsal.terraform import bindings, plugin_server
from rehearsal.terraform.fake_provider import Provider, Schemas, served
from rehearsal.terraform.resource_type import Place

PROVIDERS = "/providers"  # where a World asks for those that act as one service account


def schemas_of(name: str, cache: Path) -> Schemas:
    """The schemas of every type of one provider that has rules."""
    names = [
        bindings.PROVIDER,
        *RESOURCE_TYPES[name],
        *(bindings.DATA + source for source in DATA_SOURCES.get(name, {})),
    ]
    return served(bindings.read(name, names, cache))


def provider(name: str, schemas: Schemas, *, cloud: Cloud, place: Place, account: str = "") -> Provider:
    """One fake provider, as the project's administrator or as a service account."""
    return Provider(
        cloud=cloud,
        place=place,
        schemas_=schemas,
        resource_types=RESOURCE_TYPES[name],
        sources=DATA_SOURCES.get(name, {}),
        account=account,
    )


class FakeProviders:
    """The running fake providers. A provider's process does not see the token, so each account has its own."""

    def __init__(self, *, cloud: Cloud, place: Place, cache: Path) -> None:
        self._provider = functools.partial(provider, cloud=cloud, place=place)
        self._schemas = {name: schemas_of(name, cache) for name in RESOURCE_TYPES}
        self._servers: dict[str, dict[str, tuple[grpc.Server, str]]] = {}
        self._lock = threading.Lock()

    def reattach(self, account: str = "") -> str:
        """The value of TF_REATTACH_PROVIDERS for those of an account, which run from now on."""
        with self._lock:
            if account not in self._servers:
                self._servers[account] = {
                    name: plugin_server.serve(self._provider(name, schemas, account=account))
                    for name, schemas in self._schemas.items()
                }
            return plugin_server.reattach({name: address for name, (_, address) in self._servers[account].items()})


def answers(cloud: Cloud) -> Callable[[http_server.Request], http_server.Response]:
    """All that is spoken over HTTP: clusters and their API servers, Cloud Build's builds, lists, images, buckets."""
    storage = Storage(cloud)

    def answer(request: http_server.Request) -> http_server.Response:
        if request.path.startswith(server.PREFIX):
            return server.serve(cloud, request)
        apis = (api, cluster_api, compute_api, project_api, list_apis, artifact_registry_api)
        serving = next((module for module in apis if module.serves(request.path)), None)
        http_access.check_quota_project(cloud, request, storage=serving is None)
        if serving is not None:
            response: http_server.Response = serving.serve(cloud, request)
            return response
        return storage.handle(request)

    return answer


def main(folder: str, cache: str) -> int:
    """Serve; announce on stdout, as one line of JSON; end when stdin does, which is when the parent is gone.

    Then all that the parent has left at work ends too: it would ask this server, again and again.
    """
    cloud = Cloud(Path(folder) / "cloud.db")
    google = answers(cloud)

    def answer(request: http_server.Request) -> http_server.Response:
        if request.path == PROVIDERS:
            return http_server.json_response({"reattach": providers.reattach(request.query["account"])})
        return google(request)

    _, address = http_server.start(answer)
    providers = FakeProviders(cloud=cloud, place=Place(folder=Path(folder), address=address), cache=Path(cache))
    print(json.dumps({"reattach": providers.reattach(), "address": address}), flush=True)
    sys.stdin.read()
    started_processes.forget(Path(folder) / started_processes.FOLDER, os.getpid())
    started_processes.end(Path(folder) / started_processes.FOLDER)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
