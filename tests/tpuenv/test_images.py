"""`tpuenv images`: what the registry has, the command that builds what it has not, and running that command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from environment.project import ROOT
from manifests.images import recipes_with_an_image
from rehearsal import http_server
from rehearsal.cloud import Cloud
from rehearsal.cloudbuild.config import read
from rehearsal.google.artifact_registry_api import IMAGE, REPOSITORY, push
from rehearsal.google.permissions import token_of
from rehearsal.serve import answers
from tests import published
from tests.python_program import write_python_program
from tpuenv.main import main

NAME = "projects/some-project/locations/us-east5/repositories/tpu-images"
REGISTRY = "us-east5-docker.pkg.dev/some-project/tpu-images"

# A gcloud that notes its words and, where the build is to succeed, pushes as Cloud Build would.
GCLOUD = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from rehearsal.cloud import Cloud
from rehearsal.google.artifact_registry_api import push
Path({log!r}).write_text("\\n".join([str(Path.cwd()), *sys.argv[1:]]))
image = sys.argv[-1].removeprefix("_IMAGE=")
{action}
"""


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    """A registry without images, and the settings and variables that make the command meet it."""
    fake = Cloud(tmp_path / "cloud.db")
    server, address = http_server.start(answers(fake))
    monkeypatch.setenv("TPUENV_FOLDER", str(published.folder(tmp_path)))
    monkeypatch.setenv("PROJECT_ID", "some-project")
    monkeypatch.setenv("GOOGLE_ARTIFACT_REGISTRY_CUSTOM_ENDPOINT", f"{address}/v1/")
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", token_of(""))
    fake.put(REPOSITORY, NAME, {"name": "tpu-images", "location": "us-east5"})
    yield fake
    server.shutdown()
    server.server_close()
    fake.close()


def gcloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str) -> Path:
    """The only program on the PATH; the file in which it notes its folder and its words."""
    log = tmp_path / "gcloud.log"
    program = tmp_path / "bin" / "gcloud"
    program.parent.mkdir()
    write_python_program(program, GCLOUD.format(root=str(ROOT), log=str(log), action=action))
    monkeypatch.setenv("PATH", str(program.parent))
    return log


def test_every_image_that_is_missing_is_shown_with_the_command_that_builds_it(
    cloud: Cloud, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["images"]) == 1
    shown = capsys.readouterr().out
    for recipe in recipes_with_an_image():
        assert f"{recipe}: not in the registry; this builds it:\n  gcloud builds submit manifests/{recipe} " in shown


def test_the_command_gives_the_build_file_what_it_declares(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    main(["images", "hello-tpu"])
    words = shlex.split(capsys.readouterr().out.splitlines()[1])
    options = dict(zip(words[4::2], words[5::2], strict=True))
    account = "projects/some-project/serviceAccounts/tpu-build@some-project.iam.gserviceaccount.com"
    assert options["--service-account"] == account
    assert options["--gcs-source-staging-dir"] == "gs://some-project-tpu-builds/source"
    assert options["--gcs-log-dir"] == "gs://some-project-tpu-builds/logs"
    name, _, reference = options["--substitutions"].partition("=")
    assert read(ROOT / options["--config"]).substitutions.keys() == {name}
    assert reference.startswith(f"{REGISTRY}/hello-tpu:")
    assert (ROOT / words[3] / "Dockerfile").is_file()
    push(cloud, reference)
    assert main(["images", "hello-tpu"]) == 0
    assert capsys.readouterr().out.startswith(f"hello-tpu: {REGISTRY}/hello-tpu@sha256:")


def test_build_builds_what_is_missing_and_nothing_else(
    cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = gcloud(tmp_path, monkeypatch, f"push(Cloud(Path({str(tmp_path / 'cloud.db')!r})), image)")
    assert main(["images", "--build", "hello-tpu"]) == 0
    folder, *words = log.read_text().splitlines()
    assert (folder, words[:3]) == (str(ROOT), ["builds", "submit", "manifests/hello-tpu"])
    assert f"hello-tpu: {REGISTRY}/hello-tpu@sha256:" in capsys.readouterr().out
    assert [image.name.split("/")[7] for image in cloud.find(IMAGE)] == ["hello-tpu"]
    log.unlink()
    assert main(["images", "--build", "hello-tpu"]) == 0
    assert not log.exists()


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("sys.exit(3)", "hello-tpu: its image was not built: gcloud ended with exit code 3;"),
        ("pass", f"hello-tpu: the build succeeded, and the registry does not have {REGISTRY}/hello-tpu:"),
    ],
)
def test_a_build_that_leaves_no_image_is_reported(
    cloud: Cloud,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    action: str,
    message: str,
) -> None:
    gcloud(tmp_path, monkeypatch, action)
    assert main(["images", "--build", "hello-tpu"]) == 1
    assert capsys.readouterr().err.startswith(message)


ACT_AS = "PERMISSION_DENIED: caller does not have permission to act as service account"
GRANT = "gcloud iam service-accounts add-iam-policy-binding tpu-build@some-project.iam.gserviceaccount.com"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            f"ERROR: (gcloud.builds.submit) {ACT_AS}",
            f"  {GRANT} --project=some-project --member=user:YOUR_EMAIL",
        ),
        ("HTTPError 403: does not have storage.buckets.get access", "gs://some-project-tpu-builds --member=user"),
        ("NOT_FOUND: Unknown service account", "`tpuenv deploy foundation` makes both"),
        ("ERROR: build step 0 failed: exit status 1", "The images built before are in the registry\n"),
    ],
)
def test_a_refused_build_is_explained_after_what_gcloud_said(
    cloud: Cloud,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    said: str,
    words: str,
) -> None:
    gcloud(tmp_path, monkeypatch, f"sys.exit({said!r})")
    assert main(["images", "--build", "hello-tpu"]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith(f"{said}\nhello-tpu: its image was not built: gcloud ended with exit code 1;")
    assert words in shown


def test_without_gcloud_the_command_to_run_elsewhere_is_printed(
    cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["images", "--build", "hello-tpu"]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("gcloud: not found on the PATH;")
    assert "\n  gcloud builds submit manifests/hello-tpu --config cloudbuild/images.yaml" in shown


def test_a_recipe_that_does_not_exist_is_refused(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["images", "helo-tpu"]) == 2
    assert capsys.readouterr().err == "there is no recipe 'helo-tpu' with an image; did you mean 'hello-tpu'?\n"


def test_render_names_the_image_by_its_digest_where_the_registry_has_it(
    cloud: Cloud, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["render", "hello-tpu"]) == 0
    printed = capsys.readouterr()
    (tagged,) = re.findall(rf"{REGISTRY}/hello-tpu:[0-9a-f]{{12}}", printed.out)
    assert printed.err.startswith("note: the image is named by its tag, and ")
    assert tagged in printed.err
    push(cloud, tagged)
    assert main(["render", "hello-tpu"]) == 0
    printed = capsys.readouterr()
    assert re.search(rf"{REGISTRY}/hello-tpu@sha256:[0-9a-f]{{64}}", printed.out)
    assert (tagged in printed.out, printed.err) == (False, "")
