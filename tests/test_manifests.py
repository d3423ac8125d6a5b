"""The workloads' manifests, as they are rendered."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

import environment
from manifests.render import WORKLOADS, BadManifest, render
from manifests.written_files import NotWritten, write_files
from tests.synthesis import HERE


def rendered(folder: Path, *, workloads: Path = WORKLOADS, **settings: str) -> dict[str, str]:
    """Every rendered manifest by its path under `folder`."""
    default = environment.load(HERE / "cases" / "default.env", process_env=settings)
    files = write_files(folder, render(default, workloads=workloads))
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in files}


@pytest.mark.parametrize("namespace", ["0", "null", "true", "1e3"])
def test_a_name_that_yaml_reads_as_something_else_stays_a_name(namespace: str, tmp_path: Path) -> None:
    for text in rendered(tmp_path, NAMESPACE=namespace).values():
        for document in yaml.safe_load_all(text):
            assert document["metadata"]["namespace"] == namespace


def test_what_a_team_of_before_left_is_gone(tmp_path: Path) -> None:
    rendered(tmp_path / "manifests", NAMESPACE="before")
    rendered(tmp_path / "manifests", NAMESPACE="after")
    assert [path.name for path in (tmp_path / "manifests").iterdir() if path.is_dir()] == ["after"]


def test_what_somebody_keeps_beside_them_stays(tmp_path: Path) -> None:
    kept = [tmp_path / "notes.txt", tmp_path / "hello-tpu" / "hello-tpu.yaml", tmp_path / "a" / "b" / "mine.yaml"]
    for path in kept:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    rendered(tmp_path, NAMESPACE="before")
    rendered(tmp_path, NAMESPACE="after")
    assert [path.read_text() for path in kept] == ["mine"] * 3
    assert not (tmp_path / "before").exists()


def test_no_name_is_left_to_fill_in(tmp_path: Path) -> None:
    assert not any("${" in text for text in rendered(tmp_path).values())


def workload(folder: Path, name: str, **files: str) -> Path:
    """A copy of manifests/ in `folder` with one workload more, of these files."""
    workloads = folder / "manifests"
    shutil.copytree(WORKLOADS / "hello-tpu", workloads / "hello-tpu", dirs_exist_ok=True)
    (workloads / name).mkdir()
    for file, text in files.items():
        (workloads / name / f"{file}.yaml").write_text(text, encoding="utf-8")
    return workloads


def test_a_new_workload_is_a_folder_and_none_of_its_files_is_lost(tmp_path: Path) -> None:
    workloads = workload(
        tmp_path, "serve", server="queue: ${QUEUE}\n---\nimage: ${IMAGE}\n", client="a: $${B} $(C) $D\n"
    )
    texts = rendered(tmp_path / "out", workloads=workloads)
    assert sorted(texts) == [f"tpu-training/tpu/{name}.yaml" for name in ("hello-tpu", "serve/client", "serve/server")]
    image = "us-east5-docker.pkg.dev/my-project/tpu-images/serve"
    assert texts["tpu-training/tpu/serve/server.yaml"] == f"queue: default\n---\nimage: {image}\n"
    assert texts["tpu-training/tpu/serve/client.yaml"] == "a: ${B} $(C) $D\n", "what is no ${NAME} stays"


def test_a_file_or_workload_that_is_gone_goes_from_the_rendered_ones(tmp_path: Path) -> None:
    workloads = workload(tmp_path, "serve", server="a: 1\n", client="a: 2\n")
    rendered(tmp_path / "out", workloads=workloads)
    (workloads / "serve" / "client.yaml").unlink()
    files = "tpu-training/tpu/hello-tpu.yaml", "tpu-training/tpu/serve.yaml"
    assert tuple(rendered(tmp_path / "out", workloads=workloads)) == files == on_disk(tmp_path / "out")
    shutil.rmtree(workloads / "serve")
    assert tuple(rendered(tmp_path / "out", workloads=workloads)) == files[:1] == on_disk(tmp_path / "out")


def on_disk(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(str(path.relative_to(folder)) for path in folder.rglob("*.yaml")))


def test_a_name_that_does_not_exist_is_an_error_with_its_place_and_nothing_is_written(tmp_path: Path) -> None:
    workloads = workload(tmp_path, "serve", server="a: ${HOST}\nb: ${HOME}\n", client="a: ${}\nb: ${NOT CLOSED\n")
    with pytest.raises(BadManifest) as error:
        rendered(tmp_path / "out", workloads=workloads)
    first, second, third, fourth = str(error.value).splitlines()
    assert first.startswith("manifests/serve/client.yaml:1: ${} is not a name that is filled in; ")
    assert second.startswith("manifests/serve/client.yaml:2: ${NOT CLOSED is not a name")
    assert third.startswith(
        "manifests/serve/server.yaml:1: ${HOST} is not a name that is filled in; did you mean ${HOSTS}?"
    )
    assert fourth.startswith("manifests/serve/server.yaml:2: ${HOME} is not a name")
    assert all(" ACCELERATOR, BUCKET, CHIPS, " in line for line in (first, second, third, fourth))
    assert fourth.endswith("; write $${HOME} where the manifest itself needs that text")
    assert not (tmp_path / "out").exists()


def test_a_file_that_cannot_be_read_is_an_error_with_its_name(tmp_path: Path) -> None:
    workloads = workload(tmp_path, "serve", server="a: 1\n")
    (workloads / "serve" / "server.yaml").write_bytes(b"a: \xff\n")
    with pytest.raises(BadManifest, match=r"^manifests/serve/server\.yaml: line 1 is not UTF-8"):
        rendered(tmp_path / "out", workloads=workloads)


def test_two_workloads_that_clash_are_an_error_with_both(tmp_path: Path) -> None:
    workloads = workload(tmp_path, "hello-tpu.yaml", server="a: 1\n", client="a: 2\n")
    with pytest.raises(BadManifest, match=r"manifests/hello-tpu/jobset\.yaml and manifests/hello-tpu\.yaml/client"):
        rendered(tmp_path / "out", workloads=workloads)
    assert not (tmp_path / "out").exists()


def test_a_file_takes_the_place_of_a_folder_that_an_earlier_run_wrote_and_back(tmp_path: Path) -> None:
    workloads = workload(tmp_path, "a.yaml", b="a: 1\n", c="a: 2\n")
    rendered(tmp_path / "out", workloads=workloads)
    (workloads / "a.yaml").rename(workloads / "a")
    (workloads / "a" / "c.yaml").rename(tmp_path / "c.yaml")
    assert "tpu-training/tpu/a.yaml" in rendered(tmp_path / "out", workloads=workloads)
    (tmp_path / "c.yaml").rename(workloads / "a" / "c.yaml")
    (workloads / "a").rename(workloads / "a.yaml")
    assert "tpu-training/tpu/a.yaml/b.yaml" in rendered(tmp_path / "out", workloads=workloads)


def test_a_file_that_no_run_wrote_is_never_replaced(tmp_path: Path) -> None:
    workloads = workload(tmp_path, "serve", server="a: 1\n")
    (workloads / "serve").rename(tmp_path / "serve")
    (written,) = rendered(tmp_path / "out", workloads=workloads)
    mine = tmp_path / "out" / "tpu-training" / "tpu" / "serve.yaml"
    (tmp_path / "mine").write_text("mine")
    mine.symlink_to(tmp_path / "mine")
    (tmp_path / "serve").rename(workloads / "serve")
    with pytest.raises(NotWritten, match=r"serve\.yaml: not written by an earlier synthesis; move it away$"):
        rendered(tmp_path / "out", workloads=workloads)
    mine.unlink()
    mine.write_text("a: 1\n")
    rendered(tmp_path / "out", workloads=workloads)
    mine.unlink()
    mine.symlink_to(tmp_path / "mine")
    rendered(tmp_path / "out", workloads=workloads)
    assert ((tmp_path / "mine").read_text(), mine.read_text(), mine.is_symlink()) == ("mine", "a: 1\n", False)
    assert written in on_disk(tmp_path / "out")


@pytest.mark.parametrize(
    "record",
    [
        pytest.param("tpu/a.yaml\n", id="lines"),
        pytest.param("{}", id="object"),
        pytest.param("[1]", id="number"),
        pytest.param("[" * 100_000, id="deep"),
        pytest.param('["../mine", "/", "\\u0000", "."]', id="outside"),
        pytest.param("\udcff", id="bytes"),
    ],
)
def test_a_damaged_record_is_none_and_deletes_nothing(record: str, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    rendered(tmp_path / "out")
    (tmp_path / "out" / ".rendered").write_text(record, errors="surrogateescape")
    rendered(tmp_path / "out")
    assert (tmp_path / "mine").read_text() == "mine"


def test_what_the_file_system_refuses_is_an_error_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(NotWritten, match=r"/out: File exists$"):
        rendered(tmp_path / "out")
    workloads = workload(tmp_path, "serve", server="a: 1\n")
    (workloads / "serve").rename(workloads / "serve\udcff")
    with pytest.raises(BadManifest, match=r"^manifests/serve\\udcff/server\.yaml: its name is not UTF-8; rename it$"):
        rendered(tmp_path / "other", workloads=workloads)


def test_hidden_folders_and_caches_are_no_workloads_and_a_newline_in_a_name_is_kept(tmp_path: Path) -> None:
    workloads = workload(tmp_path, "two\nlines", server="a: 1\n", **{".hidden": "a: 2\n"})
    for name in (".git", "__pycache__"):
        (workloads / name).mkdir()
        (workloads / name / "a.yaml").write_text("a: ${NOPE}\n")
    paths = ["tpu-training/tpu/hello-tpu.yaml", "tpu-training/tpu/two\nlines.yaml"]
    assert list(rendered(tmp_path / "out", workloads=workloads)) == paths
    shutil.rmtree(workloads / "two\nlines")
    rendered(tmp_path / "out", workloads=workloads)
    assert list(on_disk(tmp_path / "out")) == paths[:1]


def test_many_mistakes_are_counted_and_long_names_shortened(tmp_path: Path) -> None:
    names = "".join(f"a: ${{N{number}{'X' * 90}\a}}\n" for number in range(25))
    with pytest.raises(BadManifest) as error:
        rendered(tmp_path / "out", workloads=workload(tmp_path, "serve", server=names))
    lines = str(error.value).splitlines()
    assert (len(lines), lines[-1]) == (21, "and 5 more")
    assert f"1: ${{N0{'X' * 53}... is not a name that is filled in; there are ACCELERATOR" in lines[0]
