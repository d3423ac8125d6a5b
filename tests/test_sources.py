"""Nothing is downloaded and run that vocabulary/sources.yaml does not name by a digest or hash, or excuse."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from environment.settings import values
from install import terraform
from manifests.recipes import recipe_named
from tests.synthesis import CASES, ROOT, Synthesis, stacks_of
from vocabulary.sources import CHARTS, CHECKED_OTHERWISE, IMAGES, LOCKS, RELEASES, Source

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
# Made of the content that it is built from: manifests.images.content_tag.
OUR_TAG = re.compile(r"[0-9a-f]{12}")


def ours(pattern: str) -> list[str]:
    """Files of the repository: none in a folder of what was installed or synthesized."""
    paths = [path.relative_to(ROOT) for path in [*ROOT.glob(pattern), *ROOT.glob(f"[a-z]*/**/{pattern}")]]
    return sorted(str(path) for path in paths if path.parts[0] != "cdktf.out")


def mistake(reference: str, *, registry: str = "-") -> str:
    """Why an image or a chart may not be named like this, or "". `registry`: the environment's own."""
    name, _, digest = reference.partition("@")
    tag = name.rpartition(":")[2]
    if name.startswith(f"{registry}/") and OUR_TAG.fullmatch(tag):
        return ""
    path = name.removesuffix(f":{tag}") if "/" not in tag else name
    for source in [*CHARTS.values(), *IMAGES.values()]:
        here = path.endswith(f"/{source.path}") or source.path in (path, f"library/{path}")
        if here and digest == source.digest and (digest or tag == source.version):
            return ""
    return f"{reference}: is not in vocabulary/sources.yaml with this digest"


def images_in(value: Any) -> Iterator[str]:
    """Every value of a key `image`, also in text that is JSON or YAML: of containers, and of the values of charts."""
    if isinstance(value, str) and "image" in value and "\n" in value:
        try:
            yield from images_in(yaml.safe_load(value))
        except yaml.YAMLError:
            return
    elif isinstance(value, list):
        for item in value:
            yield from images_in(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "image" and isinstance(item, str):
                yield item
            elif key == "image" and "repository" in item:
                yield f"{item['repository']}:{item.get('tag', '')}"
            else:
                yield from images_in(item)


@pytest.mark.parametrize("case", CASES)
def test_every_image_and_chart_of_a_case_is_by_digest(case: str, synthesis: Synthesis) -> None:
    registry = synthesis.environment(case).names.registry_url
    found: set[str] = set()
    for stack in stacks_of(case):
        found |= {*images_in(synthesis.stack(case, stack))}
        for release in synthesis.resources(case, stack, "helm_release").values():
            if not release["chart"].startswith("./"):
                found.add(f"{release['repository']}/{release['chart']}")
                assert "image" in release["values"][0], "of a chart that runs an image of its own choice"
    assert len(found) >= 5, "two charts, their images, and that of the gate"
    for text in synthesis.manifests(case).values():
        for document in yaml.safe_load_all(text):
            found |= {*images_in(document)}
            assert not [base for base in (document or {}).get("resources", []) if "//" in base], "a base of elsewhere"
    assert not [words for reference in sorted(found) if (words := mistake(reference, registry=registry))]


@pytest.mark.parametrize("path", ours("Dockerfile"))
def test_every_base_is_by_digest(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    bases = re.findall(r"^FROM +(\S+)|--from=(\S+)", text, re.MULTILINE | re.IGNORECASE)
    assert bases and not [words for pair in bases if (words := mistake("".join(pair)))]


@pytest.mark.parametrize("path", ours("cloudbuild/*.yaml"))
def test_every_build_step_is_by_digest(path: str) -> None:
    """The setting BUILDER_IMAGE takes no image without one."""
    steps = yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))["steps"]
    assert steps
    assert not [words for step in steps if step["name"] != "${_BUILDER}" and (words := mistake(step["name"]))]
    with pytest.raises(ValueError, match="names no digest"):
        values.pinned_image("us-docker.pkg.dev/a/b/builder:latest")


def test_a_chart_of_ours_names_no_image_itself() -> None:
    for path in ours("charts/*/templates/*.*"):
        images = re.findall(r"\bimage: *(.*)", (ROOT / path).read_text(encoding="utf-8"))
        assert set(images) <= {"{{ .Values.image | quote }}"}, path


def test_recipes_name_what_the_data_names() -> None:
    for name, parameter in (
        ("vllm", "vllm_image"),
        ("saxml", "admin_image"),
        ("saxml", "model_image"),
        ("saxml", "http_image"),
    ):
        assert not mistake(str(recipe_named(name).parameters[parameter].default))


def test_what_has_no_digest_is_this_and_says_why() -> None:
    unpinned = {name for name, source in {**CHARTS, **IMAGES}.items() if not source.digest}
    assert unpinned == {"sax-admin-server", "sax-model-server", "sax-http"}
    assert all(bool(source.unpinned) != bool(source.digest) for source in [*CHARTS.values(), *IMAGES.values()])
    assert all(DIGEST.fullmatch(source.digest) and source.evidence for source in IMAGES.values() if source.digest)
    assert len(CHECKED_OTHERWISE) == 3


def test_lock_files_are_those_that_there_are_and_every_line_has_a_hash() -> None:
    """Those of package-lock.json: tests/install/test_lock.py."""
    assert {*LOCKS} == {*ours("*requirements.txt"), *ours("package-lock.json"), *ours(".*.lock.hcl")}
    for lock in LOCKS:
        text = (ROOT / lock).read_text(encoding="utf-8")
        assert not re.search(r"git\+|^-|^[^#]*://", text if lock.endswith(".txt") else "", re.MULTILINE), lock
        if lock.endswith(".txt"):
            packages = re.split(r"^(?=[a-zA-Z])", text, flags=re.MULTILINE)[1:]
            assert packages
            assert not [package for package in packages if "--hash=sha256:" not in package], lock
        elif lock.endswith(".hcl"):
            providers = text.split("provider ")[1:]
            assert providers and all('"zh:' in provider or '"h1:' in provider for provider in providers)


def test_terraform_is_the_release_of_the_data_with_its_checksums() -> None:
    assert RELEASES["terraform"]["version"] == terraform.RELEASE
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in terraform.SHA256.values())


def test_tpu_vms_install_the_lock_with_its_hashes_and_nothing_else(synthesis: Synthesis) -> None:
    for vm in synthesis.resources("tpu-vms", "tpu-vms", "google_tpu_v2_vm").values():
        metadata = vm["metadata"]
        assert metadata["python-packages"] == (ROOT / "stacks/tpu_vm_requirements.txt").read_text(encoding="utf-8")
        assert all(len(value) < 256 * 1024 for value in metadata.values())
        assert sum(map(len, metadata.values())) < 512 * 1024
        installed = re.findall(r'"install",.*', metadata["startup-script"])
        assert installed == [
            '"install", "--yes", "python3-venv")',
            '"install", "--no-cache-dir", *checked, "-r", listed)',
        ]
        assert 'checked = ("--no-deps", "--require-hashes", "--only-binary=:all:")' in metadata["startup-script"]


@pytest.mark.parametrize(
    "reference",
    [
        "registry.k8s.io/kueue/kueue:v0.19.2",
        f"registry.k8s.io/kueue/kueue:v0.19.2@sha256:{'0' * 64}",
        f"registry.k8s.io/kueue/kueue:{IMAGES['jobset'].tag}",
        "oci://registry.k8s.io/kueue/charts/kueue",
        "python:3.12-slim-bookworm",
        "busybox",
        "busybox:latest",
        f"quay.io/other/thing@sha256:{'0' * 64}",
        "us-docker.pkg.dev/cloud-tpu-images/inference/sax-http:latest",
        "my-registry/hello-tpu:latest",
    ],
)
def test_what_is_not_pinned_is_found(reference: str) -> None:
    assert mistake(reference, registry="my-registry")


def test_what_is_pinned_is_pinned_under_a_mirror_too() -> None:
    kueue = IMAGES["kueue"]
    assert not mistake(f"mirror.example.com/images/{kueue.path}:{kueue.tag}")
    assert not mistake("my-registry/hello-tpu:0123456789ab", registry="my-registry")
    assert Source(registry="r", path="p", version="v1", digest="sha256:0").tag == "v1@sha256:0"
