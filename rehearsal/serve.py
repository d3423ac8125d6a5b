"""The rehearsal's one process: the stand-in providers and the cloud's HTTP server, until its parent goes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from rehearsal import bindings, plugins, web
from rehearsal.cloud import Cloud
from rehearsal.gcs import Storage
from rehearsal.kubernetes import server
from rehearsal.provider import Provider, Schemas, served
from rehearsal.rules.kind import Place
from rehearsal.rules.registry import KINDS, SOURCES


def schemas_of(name: str, cache: Path) -> Schemas:
    """The schemas of every type of one provider that has rules."""
    names = [bindings.PROVIDER, *KINDS[name], *(bindings.DATA + source for source in SOURCES.get(name, {}))]
    return served(bindings.read(name, names, cache))


def provider(name: str, schemas: Schemas, *, cloud: Cloud, place: Place) -> Provider:
    """The stand-in of one provider."""
    return Provider(cloud=cloud, place=place, schemas_=schemas, kinds=KINDS[name], sources=SOURCES.get(name, {}))


def answers(cloud: Cloud) -> Callable[[web.Request], web.Response]:
    """All that is spoken over HTTP: the clusters' API servers, and Cloud Storage."""
    storage = Storage(cloud)

    def answer(request: web.Request) -> web.Response:
        in_cluster = request.path.startswith(server.PREFIX)
        return server.serve(cloud, request) if in_cluster else storage.handle(request)

    return answer


def main(folder: str, cache: str) -> int:
    """Serve; announce on stdout, as one line of JSON; end when stdin does, which is when the parent is gone."""
    cloud = Cloud(Path(folder) / "cloud.db")
    _, address = web.start(answers(cloud))
    place = Place(folder=Path(folder), address=address)
    servers = {
        name: plugins.serve(provider(name, schemas_of(name, Path(cache)), cloud=cloud, place=place)) for name in KINDS
    }
    addresses = {name: address for name, (_, address) in servers.items()}
    print(json.dumps({"reattach": plugins.reattach(addresses), "address": address}), flush=True)
    sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
