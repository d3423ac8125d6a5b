"""`tpuenv check`: the answer for people, exit codes for scripts, and one clear line for a file that cannot be used."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import yaml

from tests import published
from tpuenv.main import main

CASES = Path(__file__).parent.parent / "admission" / "cases"
FACTS = Path(__file__).parent.parent / "facts"
SETTINGS = {
    "PROJECT_ID": "my-project",
    "TPU_TYPE": "v6e-16",
    "NUM_TPU_POOLS": "2",
    "NAMESPACE": "tpu-training",
    "CPU_MACHINE_TYPE": "n2-standard-8",
    "CPU_MAX_NODES": "4",
}


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in SETTINGS.items():
        monkeypatch.setenv(key, value)


def _manifest(name: str) -> str:
    """The manifest of a case, without the answer above it."""
    _, manifest = (CASES / f"{name}.yaml").read_text(encoding="utf-8").split("---\n")
    return manifest


def _check(*argv: str) -> int:
    return main(["check", *argv])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "job.yaml"


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("jobset-one-slice", 0, "flavor tpu  gets 1 slice of tpu-v6e-slice 4x4: 16 chips"),
        ("jobset-no-toleration", 0, "flavor tpu  gets 1 slice"),
        ("wrong-topology", 1, "-> use 4x4"),
        ("name-too-long", 1, "would be refused"),
    ],
)
def test_the_exit_code_says_whether_it_would_ever_start(
    name: str, code: int, words: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(_manifest(name), encoding="utf-8")
    assert _check(str(file)) == code
    assert words in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "account", "code", "words"),
    [
        ("job-cpu", "tpu-training", 0, "would be admitted now"),
        ("job-cpu", "default", 0, "would be admitted now"),
        ("jobset-one-slice", "trainer", 1, "-> use tpu-training"),
    ],
)
def test_a_team_s_namespace_has_two_service_accounts(
    name: str, account: str, code: int, words: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = _manifest(name)
    file.write_text(
        text.replace("restartPolicy:", f"serviceAccountName: {account}\n{' ' * _indent(text)}restartPolicy:")
    )
    assert _check(str(file)) == code
    assert words in capsys.readouterr().out


@pytest.mark.parametrize(
    ("label", "code", "words"),
    [
        ("cloud.google.com/gke-spot: 'true'", 1, "would never start"),
        ("topology.kubernetes.io/zone: us-east5-z", 1, "or remove it"),
        ("cloud.google.com/gke-nodepool: tpu-2", 1, "use tpu-0 or tpu-1"),
        ("cloud.google.com/gke-nodepool: tpu-1", 0, "would be admitted now"),
        ("foo: bar", 0, "note: workers: selects foo: bar, which Kueue ignores"),
    ],
)
def test_a_label_that_only_the_scheduler_reads_is_compared_with_the_nodes_of_the_environment(
    label: str, code: int, words: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topology = "cloud.google.com/gke-tpu-topology: 4x4"
    text = _manifest("jobset-one-slice").replace(topology, f"{topology}\n{' ' * 16}{label}")
    file.write_text(text, encoding="utf-8")
    assert _check(str(file)) == code
    assert words in capsys.readouterr().out


def _indent(text: str) -> int:
    """Spaces before the restart policy, where the pod's fields begin."""
    (line,) = (line for line in text.splitlines() if "restartPolicy:" in line)
    return len(line) - len(line.lstrip())


def test_a_mapping_may_be_merged_and_overridden(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = _manifest("job-cpu").replace("labels:", "annotations: &a {x: a, y: b}\n  labels:\n    <<: *a\n    x: c")
    file.write_text(text, encoding="utf-8")
    assert _check(str(file)) == 0
    assert "would be admitted now" in capsys.readouterr().out


def test_help_says_what_is_not_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert _check("--help") == 0
    assert "Not checked: jobs that run or wait" in " ".join(capsys.readouterr().out.split())


def test_the_settings_decide(file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(_manifest("jobset-one-slice"), encoding="utf-8")
    monkeypatch.setenv("TPU_TYPE", "v6e-64")
    assert _check(str(file)) == 1
    assert "use 8x8" in capsys.readouterr().out


def test_workloads_in_one_file_are_admitted_one_after_the_other(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n"
    file.write_text(
        "---\n".join([service, _manifest("jobset-two-slices"), _manifest("rayjob-one-slice")]), encoding="utf-8"
    )
    assert _check(str(file)) == 0
    captured = capsys.readouterr()
    assert captured.out.index("would be admitted now") < captured.out.index("would wait")
    assert "note: not checked: Service\n" in captured.err


@pytest.mark.parametrize(
    ("beside", "said"),
    [
        ("kind: Service\nmetadata: {name: a}\nspec: {type: NodePort}", "it opens a port to the outside"),
        ("kind: Service\nmetadata: {name: a}\nspec: {type: LoadBalancer}", "a load balancer is open to the internet"),
        ("kind: Secret\nmetadata: {name: a}\ntype: kubernetes.io/service-account-token", "such a token never ends"),
    ],
)
def test_what_a_team_may_not_have_beside_its_jobs_is_refused(
    file: Path, capsys: pytest.CaptureFixture[str], beside: str, said: str
) -> None:
    file.write_text(f"apiVersion: v1\n{beside}\n---\n{_manifest('jobset-one-slice')}", encoding="utf-8")
    assert _check(str(file)) == 1
    printed = capsys.readouterr().out
    assert "a: would be refused" in printed and said in printed and "would be admitted now" in printed


def test_a_service_of_no_team_is_not_checked_and_one_without_a_namespace_by_the_rules_of_all_teams(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TPUENV_FOLDER", str(published.folder(tmp_path)))
    (tmp_path / "vars.env").write_text(f"PROJECT_ID={SETTINGS['PROJECT_ID']}\nTF_STATE_BUCKET=my-state\n")
    for key in SETTINGS:
        monkeypatch.delenv(key)
    fleet = "tpu_pools: {dev: {type: v6e-16, slices: 1}}\nteams: {research: {}, serving: {}}\n"
    (tmp_path / "fleet.yaml").write_text(fleet)
    file = tmp_path / "services.yaml"
    job = _manifest("jobset-one-slice").replace("namespace: tpu-training", "namespace: research")
    for namespace, code in (("", 1), (", namespace: serving", 1), (", namespace: monitoring", 0)):
        port = f"apiVersion: v1\nkind: Service\nmetadata: {{name: a{namespace}}}\nspec: {{type: NodePort}}\n"
        file.write_text(f"{port}---\n{job}", encoding="utf-8")
        assert _check(str(file)) == code, capsys.readouterr()


def test_the_same_workload_twice_gets_a_note(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("---\n".join([_manifest("job-cpu")] * 2), encoding="utf-8")
    assert _check(str(file)) == 0
    captured = capsys.readouterr()
    assert captured.out.count("would be admitted now") == 2
    assert captured.err == f"note: {file}: Job tpu-training/train is there twice; on a cluster it would be one\n"


def test_workloads_with_generated_names_are_several(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("---\n".join([_manifest("job-cpu").replace("name: train", "generateName: train-")] * 2))
    assert _check(str(file)) == 0
    assert capsys.readouterr().err == ""


def test_a_list_is_what_is_in_it(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = [yaml.safe_load(_manifest(name)) for name in ("job-cpu", "jobset-one-slice")]
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": jobs}), encoding="utf-8")
    assert _check(str(file)) == 0
    assert capsys.readouterr().out.count("would be admitted now") == 2


def test_a_manifest_may_come_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(_manifest("job-cpu").encode())))
    assert _check("-") == 0
    assert "would be admitted now" in capsys.readouterr().out


def test_a_manifest_without_a_namespace_is_the_only_team_s(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = yaml.safe_load(_manifest("job-cpu"))
    del manifest["metadata"]["namespace"]
    file.write_text(yaml.safe_dump(manifest), encoding="utf-8")
    assert _check(str(file)) == 0
    assert "Job tpu-training/train" in capsys.readouterr().out


@pytest.mark.nested_too_deeply
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a: [", "is not YAML, line 1"),
        (b"kind: !!timestamp foo", "is not YAML: a value is not what its tag says"),
        (b"kind: !!bool x", "is not YAML: a value is not what its tag says"),
        (b"a: !!int", "is not YAML: a value is not what its tag says"),
        (b"a: b: c", "is not YAML, line 1"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"", "it is empty"),
        (b"# nothing\n---\n", "it is empty"),
        (b"- a\n", "document 1 is not a Kubernetes object"),
        (b"kind: 3", "document 1 is not a Kubernetes object"),
        (b"kind: Service", "holds no Job, JobSet, RayJob or RayCluster, only Service"),
        (b"a: 1\nb: {c: 1, c: 2}", "is not YAML, line 2: 'c' is there twice; keep one"),
        (b"kind: jobset", "kind jobset does not exist; did you mean JobSet?"),
        (b"kind: Deployment", "kind Deployment is not queued here"),
        (b"kind: Job", "apiVersion: '' is not that of a Job; use batch/v1"),
        (b"[" * 3000, "is not YAML"),
        (b'kind: "\\e[31mX"', r"only \x1b[31mX"),
        (b"kind: &a [*a]", "document 1 is not a Kubernetes object"),
        (b"kind: Job\napiVersion: batch/v1\nspec: {parallelism: " + b"9" * 9000 + b"}", "is not YAML"),
        (b"kind: CronJob", "kind CronJob is not queued itself; check a Job such as it creates"),
        (b"a" * (5 << 20), "is larger than 4 MiB"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line_of_error(
    content: bytes, words: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_bytes(content)
    assert _check(str(file)) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    (line,) = captured.err.splitlines()
    assert line.startswith(f"{file}: ")
    assert captured.out == ""


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"spec: 3", "spec: 3 is not a mapping of fields"),
        (b'metadata: {labels: {"a\\nb": 1}}', r"labels.a\nb: 1 is not text"),
        (
            b"spec: {template: {spec: {containers: [{resources: {requests: {cpu: -1}}}]}}}",
            "requests.cpu: -1 is less than nothing",
        ),
        (b"spec: {parallelism: 0x" + b"f" * 9000 + b"}", "is not a whole number of 32 bits"),
        (b"spec: &a {parallelism: 1, template: *a}", "there is no such field"),
    ],
)
def test_a_workload_that_is_malformed_is_refused_with_the_rest_of_what_is_wrong(
    content: bytes, words: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_bytes(b"kind: Job\napiVersion: batch/v1\n" + content)
    assert _check(str(file)) == 1
    captured = capsys.readouterr()
    assert words in captured.out
    assert "has neither a name nor a generateName" in captured.out
    assert captured.err == ""


def test_a_file_that_is_not_there_is_one_line_of_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _check(str(tmp_path / "gone.yaml")) == 2
    assert "there is no such file" in capsys.readouterr().err
    assert _check(str(tmp_path)) == 2
    assert "holds no file that ends with .yaml, .yml, .json" in capsys.readouterr().err


_POD = """
apiVersion: v1
kind: Pod
metadata: {name: debug}
spec: {containers: [{name: a, image: a, resources: {limits: {google.com/tpu: 4}}}]}
"""


def test_several_files_are_one_after_the_other_each_with_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("jobset-two-slices", "rayjob-one-slice", "name-too-long")
    files = [tmp_path / f"{name}.yaml" for name in names]
    for name, path in zip(names, files, strict=True):
        path.write_text(_manifest(name), encoding="utf-8")
    assert _check(*map(str, files[:2])) == 0
    first, second = capsys.readouterr().out.split("\n\n")
    assert first.startswith(f"{files[0]}: JobSet tpu-training/train: would be admitted now")
    assert second.startswith(f"{files[1]}: RayJob tpu-training/ray: would wait")
    assert _check(*map(str, files)) == 1
    assert capsys.readouterr().out.count("would ") == 3


def test_a_folder_is_the_manifests_below_it_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "b.yml").write_text(_manifest("job-cpu"), encoding="utf-8")
    (tmp_path / "a.yaml").write_text(_manifest("jobset-one-slice"), encoding="utf-8")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "c.json").write_text(json.dumps(yaml.safe_load(_manifest("job-cpu"))), encoding="utf-8")
    (tmp_path / "notes.txt").write_text("not YAML: [", encoding="utf-8")
    assert _check(str(tmp_path)) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "would" in line]
    assert [Path(line.partition(": ")[0]).name for line in lines] == ["a.yaml", "b.yml", "c.json"]


def test_what_a_rendered_folder_holds_for_kustomize_is_no_manifest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "job.yaml").write_text(_manifest("jobset-one-slice"), encoding="utf-8")
    (tmp_path / "kustomization.yaml").write_text("kind: Kustomization\nresources: [job.yaml]\n", encoding="utf-8")
    (tmp_path / "kustomizeconfig.yaml").write_text("nameReference: []\n", encoding="utf-8")
    assert _check(str(tmp_path)) == 0
    assert capsys.readouterr().err == ""


def test_a_document_that_cannot_be_used_hides_no_other(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = ["a: [\n", "- a\n", "kind: jobset\n", "kind: CronJob\n"]
    good = [_manifest(name) for name in ("job-cpu", "jobset-one-slice")]
    file.write_text("---\n".join([bad[0], good[0], *bad[1:], good[1]]), encoding="utf-8")
    assert _check(str(file)) == 2
    captured = capsys.readouterr()
    assert captured.out.count("would be admitted now") == 2
    assert len(captured.err.splitlines()) == len(bad)


def test_the_line_of_what_is_not_yaml_is_the_file_s(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(f"{_manifest('job-cpu')}---\na: b: c\n", encoding="utf-8")
    assert _check(str(file)) == 2
    line = _manifest("job-cpu").count("\n") + 2
    assert f"is not YAML, line {line}:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (_POD, "Pod debug: would be refused"),
        (_POD.replace("Pod", "Deployment"), "Deployment debug: would never start"),
    ],
)
def test_pods_that_ask_for_chips_past_the_queue_are_refused_beside_the_others(
    text: str, words: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(f"{text}---\n{_manifest('job-cpu')}", encoding="utf-8")
    assert _check(str(file)) == 1
    out = capsys.readouterr().out
    assert words in out
    assert "would be admitted now" in out


def test_what_starts_pods_without_chips_is_passed_over(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(f"kind: Deployment\n---\n{_manifest('job-cpu')}", encoding="utf-8")
    assert _check(str(file)) == 0
    assert capsys.readouterr().err == "note: not checked: Deployment\n"


def test_two_namespaces_are_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(_manifest("job-cpu"), encoding="utf-8")
    assert _check(str(file), "-n", "other") == 2
    assert "is for namespace 'tpu-training', not 'other'" in capsys.readouterr().err


def test_wrong_settings_are_refused_before_anything_else(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TPU_TYPE", "v6e-17")
    assert _check(str(file)) == 2
    assert "did you mean 'v6e-16'" in capsys.readouterr().err


def test_a_job_of_xpk_is_admitted_where_there_is_its_queue(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = (str(FACTS / "xpk-workload.yaml"), "--namespace", "tpu-training")
    assert _check(*arguments) == 1
    assert "multislice-queue" in capsys.readouterr().out
    monkeypatch.setenv("XPK_COMPATIBILITY", "true")
    assert _check(*arguments) == 0
    shown = capsys.readouterr().out
    assert "queue multislice-queue -> ClusterQueue tpu-training, priority 500" in shown
    assert "slice-job  8 pods  flavor tpu  gets 2 slices of tpu-v6e-slice 4x4: 32 chips" in shown
