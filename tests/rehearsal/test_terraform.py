"""The fake providers and the state bucket, met by the real Terraform."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from environment.services import SERVICES
from rehearsal.world import Project, World
from tests.rehearsal.fake import CACHE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not on the PATH"),
]

NETWORK = "projects/my-project/global/networks/net"
SUBNET = "projects/my-project/regions/us-east5/subnetworks/sub"
BUCKET = "my-project-state"

PROJECT = Project(
    id_="my-project", number="123456789012", region="us-east5", state_bucket=BUCKET, services=list(SERVICES)
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A path with spaces, on purpose."""
    with World(folder=tmp_path_factory.mktemp("a folder") / "with spaces", project=PROJECT, cache=CACHE) as world:
        yield world


class Stack:
    """One folder with a configuration, and Terraform in it."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.folder = world.output / "stacks" / name
        self.folder.mkdir(parents=True)

    def write(self, *, backend: bool = False, **config: Any) -> None:
        terraform: dict[str, Any] = {
            "required_providers": {"google": {"source": "hashicorp/google", "version": "6.50.0"}}
        }
        if backend:
            terraform["backend"] = {"gcs": {"bucket": BUCKET, "prefix": self.name}}
        provider = {"google": {"project": "my-project", "region": "us-east5"}}
        config = {"terraform": terraform, "provider": provider} | config
        (self.folder / "main.tf.json").write_text(json.dumps(config))

    def run(self, *arguments: str, code: int = 0) -> str:
        done = subprocess.run(
            [str(self.world.terraform), *arguments, "-no-color"],
            cwd=self.folder,
            env=self.world.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout
        return done.stdout

    def apply(self, code: int = 0) -> str:
        return self.run("apply", "-auto-approve", code=code)

    def unchanged(self) -> None:
        self.run("plan", "-detailed-exitcode")


@pytest.fixture
def stack(world: World, request: pytest.FixtureRequest) -> Iterator[Stack]:
    stack = Stack(world, request.node.name.replace("[", "-").replace("]", ""))
    yield stack
    for item in world.cloud.find():
        if item.kind.startswith("google_compute"):
            world.cloud.delete(item.kind, item.name)


def network(**more: Any) -> dict[str, Any]:
    return {"name": "net", "auto_create_subnetworks": False} | more


def subnet(**more: Any) -> dict[str, Any]:
    ranges = [{"range_name": "pods", "ip_cidr_range": "10.4.0.0/14"}]
    base = {"name": "sub", "network": "${google_compute_network.n.id}", "ip_cidr_range": "10.0.0.0/20"}
    return base | {"log_config": [{"flow_sampling": 0.1}], "secondary_ip_range": ranges} | more


def both(**more: Any) -> dict[str, Any]:
    return {"google_compute_network": {"n": network()}, "google_compute_subnetwork": {"s": subnet(**more)}}


def test_apply_plan_destroy(stack: Stack) -> None:
    stack.write(resource=both(), output={"link": {"value": "${google_compute_subnetwork.s.self_link}"}})
    stack.run("init")
    said = stack.apply()
    assert "Apply complete! Resources: 2 added, 0 changed, 0 destroyed." in said
    assert f'link = "https://www.googleapis.com/compute/v1/{SUBNET}"' in said
    stack.unchanged()
    assert "Destroy complete! Resources: 2 destroyed." in stack.run("destroy", "-auto-approve")
    assert stack.world.cloud.get("google_compute_network", NETWORK) is None


def test_drift_behind_terraforms_back_shows_in_the_next_plan(stack: Stack) -> None:
    stack.write(resource=both())
    stack.run("init")
    stack.apply()
    stack.world.cloud.change("google_compute_subnetwork", SUBNET, lambda it: it.update(private_ip_google_access=True))
    stack.world.cloud.change("google_compute_network", NETWORK, lambda it: it.update(auto_create_subnetworks=True))
    said = stack.run("plan", "-detailed-exitcode", code=2)
    assert "auto_create_subnetworks" in said
    assert "must be replaced" in said
    stack.world.cloud.delete("google_compute_subnetwork", SUBNET)
    assert "google_compute_subnetwork.s will be created" in stack.run("plan", "-detailed-exitcode", code=2)


def test_a_change_in_place_and_one_that_replaces(stack: Stack) -> None:
    stack.write(resource=both())
    stack.run("init")
    stack.apply()
    stack.write(resource=both(ip_cidr_range="10.0.0.0/19"))
    assert "0 added, 1 changed, 0 destroyed" in stack.apply()
    stack.write(resource=both(ip_cidr_range="10.0.0.0/20"))
    assert "1 added, 0 changed, 1 destroyed" in stack.apply()
    stack.unchanged()


def test_an_import_brings_what_is_there(stack: Stack) -> None:
    stack.write(resource=both())
    stack.run("init")
    stack.apply()
    (stack.folder / "terraform.tfstate").unlink()
    assert "already exists, alreadyExists" in stack.apply(code=1)
    stack.run("import", "google_compute_network.n", NETWORK)
    stack.run("import", "google_compute_subnetwork.s", "us-east5/sub")
    stack.unchanged()


def test_what_does_not_exist_is_not_imported(stack: Stack) -> None:
    stack.write(resource=both())
    stack.run("init")
    assert "Cannot import non-existent remote object" in stack.run("import", "google_compute_network.n", "none", code=1)


def test_a_refusal_is_terraforms_error_with_its_resource(stack: Stack) -> None:
    stack.write(resource={"google_compute_network": {"n": network(mtu=9999)}})
    stack.run("init")
    said = stack.apply(code=1)
    assert "Error: Error creating Network: googleapi: Error 400: Invalid value for field 'resource.mtu'" in said
    assert "with google_compute_network.n," in said


def test_an_unknown_resource_type_is_terraforms_own_error(stack: Stack) -> None:
    stack.write(resource={"google_quantum_computer": {"q": {"name": "q"}}})
    stack.run("init")
    assert "Invalid resource type" in stack.run("plan", code=1)


def test_an_unknown_argument_is_terraforms_own_error(stack: Stack) -> None:
    stack.write(resource={"google_compute_network": {"n": network(colour="red")}})
    stack.run("init")
    assert 'No argument or block type is named "colour"' in stack.run("plan", code=1)


def test_two_aliases_of_a_provider_keep_their_own_settings(stack: Stack) -> None:
    """Each has its own connection, and they are configured one after the other before either creates."""
    regions = {"one": "us-east5", "two": "us-central1"}
    providers = [{"alias": alias, "project": "my-project", "region": region} for alias, region in regions.items()]
    routers = {
        alias: {
            "name": f"router-{alias}",
            "network": "net",
            "provider": f"google.{alias}",
            "depends_on": ["google_compute_network.n"],
        }
        for alias in regions
    }
    first = {"n": network(provider="google.one")}
    stack.write(
        provider={"google": providers}, resource={"google_compute_network": first, "google_compute_router": routers}
    )
    stack.run("init")
    stack.apply()
    assert {item.attributes["region"] for item in stack.world.cloud.find("google_compute_router")} == set(
        regions.values()
    )
    stack.unchanged()


def test_a_data_source_reads_the_cloud(stack: Stack) -> None:
    values = {"number": {"value": "${data.google_project.p.number}"}}
    stack.write(data={"google_project": {"p": {}}}, output=values)
    stack.run("init")
    stack.apply()
    outputs = json.loads((stack.folder / "terraform.tfstate").read_text())["outputs"]
    assert outputs["number"]["value"] == "123456789012"


def test_the_state_is_in_the_bucket_and_older_ones_stay(stack: Stack) -> None:
    stack.write(backend=True, resource={"google_compute_network": {"n": network()}})
    stack.run("init")
    stack.apply()
    stack.write(backend=True, resource=both())
    stack.apply()
    name = f"{stack.name}/default.tfstate"
    kept = stack.world.cloud.blobs(BUCKET, name=name, generations=True)
    serials = [json.loads(blob.content)["serial"] for blob in kept]
    assert len(serials) >= 2
    assert serials == sorted(serials)
    (live,) = stack.world.cloud.blobs(BUCKET, name=name)
    assert len(json.loads(live.content)["resources"]) == 2
    assert stack.world.cloud.blobs(BUCKET, name=f"{stack.name}/default.tflock") == []


def test_a_lock_is_a_lock(stack: Stack) -> None:
    stack.write(backend=True, resource={"google_compute_network": {"n": network()}})
    stack.run("init")
    lock = {
        "ID": "1",
        "Operation": "OperationTypeApply",
        "Who": "somebody@elsewhere",
        "Created": "2026-01-01T00:00:00Z",
    }
    name = f"{stack.name}/default.tflock"
    blob = stack.world.cloud.put_blob(BUCKET, name, json.dumps(lock).encode(), {}, keep_old=True)
    said = stack.apply(code=1)
    assert "Error acquiring the state lock" in said
    assert "somebody@elsewhere" in said
    assert stack.world.cloud.get("google_compute_network", NETWORK) is None
    stack.run("force-unlock", "-force", str(blob.generation))
    stack.apply()


def test_a_bucket_that_does_not_exist_is_googles_error(stack: Stack) -> None:
    stack.write(backend=True)
    text = (stack.folder / "main.tf.json").read_text().replace(BUCKET, "no-such-bucket")
    (stack.folder / "main.tf.json").write_text(text)
    assert "bucket doesn't exist" in stack.run("init", code=1)


def call(
    world: World, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    request = urllib.request.Request(world.address + path, data=body, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return reply.status, dict(reply.headers), reply.read()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read()


def test_uploads_in_pieces_listing_and_preconditions(world: World) -> None:
    upload = f"/upload/storage/v1/b/{BUCKET}/o"
    code, headers, _ = call(world, "POST", f"{upload}?uploadType=resumable&name=a%2Fb&ifGenerationMatch=0", b"{}")
    session = headers["Location"].removeprefix(world.address)
    assert call(world, "PUT", session, b"12", **{"Content-Range": "bytes 0-1/*"})[0] == 308
    code, _, made = call(world, "PUT", session, b"345", **{"Content-Range": "bytes 2-4/5"})
    assert (code, json.loads(made)["size"]) == (200, "5")
    assert call(world, "GET", f"/storage/v1/b/{BUCKET}/o/a%2Fb?alt=media")[2] == b"12345"
    assert call(world, "GET", f"/{BUCKET}/a/b")[2] == b"12345"
    assert call(world, "POST", f"{upload}?uploadType=media&name=a%2Fb&ifGenerationMatch=0", b"x")[0] == 412
    generation = json.loads(made)["generation"]
    assert call(world, "DELETE", f"/storage/v1/b/{BUCKET}/o/a%2Fb?ifGenerationMatch=7")[0] == 412
    assert call(world, "DELETE", f"/storage/v1/b/{BUCKET}/o/a%2Fb?ifGenerationMatch={generation}")[0] == 204
    assert call(world, "GET", f"/storage/v1/b/{BUCKET}/o/a%2Fb")[0] == 404
    listed = json.loads(call(world, "GET", f"/storage/v1/b/{BUCKET}/o?prefix=a%2F&versions=true")[2])
    assert [(item["name"], item["generation"]) for item in listed["items"]] == [("a/b", generation)]
    assert call(world, "GET", f"/storage/v1/b/{BUCKET}/o/a%2Fb?alt=media&generation={generation}")[2] == b"12345"
    assert call(world, "GET", "/storage/v1/b/none/o")[0] == 404
