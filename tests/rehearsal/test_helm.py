"""Rules of charts: each is broken once, and the programs of local charts really run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from rehearsal.kubernetes import webhooks
from rehearsal.kubernetes.api import Api
from rehearsal.kubernetes.resources import CRD, NAMESPACE
from rehearsal.terraform.resource_type import Refusal
from tests.rehearsal.fake import FakeCloud
from tests.rehearsal.job_sets import job_set

CLUSTER = "projects/my-project/locations/us-east5/clusters/tpu-cluster"
KUEUE = "helm_release.kueue"
JOBSET = "helm_release.jobset"
GATE = "helm_release.gate_release_629AE5E4"
DRAIN = "helm_release.drain-tpu-training_release_E972F55F"


@pytest.fixture
def api(deployed: FakeCloud) -> Api:
    return Api(deployed.cloud, CLUSTER)


def chart(folder: Path, program: str, hook: str) -> str:
    """A local chart with one program; its path."""
    (folder / "templates").mkdir(parents=True)
    (folder / "files").mkdir()
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: mine\nversion: 2.0.0\n")
    (folder / "values.yaml").write_text("greeting: hello\ndeep: {a: 1, b: 2}\n")
    (folder / "files" / "run.py").write_text(program)
    job = f"apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: x\n  annotations:\n    helm.sh/hook: {hook}\n"
    (folder / "templates" / "job.yaml").write_text(job + 'data: {{ .Files.Get "files/run.py" | toJson }}\n')
    return str(folder)


def release(path: str, **more: Any) -> dict[str, Any]:
    return {"name": "mine", "chart": path, "namespace": "default"} | more


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"version": "9.9.9"}, "registry.k8s.io/kueue/charts/kueue:9.9.9: not found"),
        ({"chart": f"kueue@sha256:{'0' * 64}"}, "chart reference digest mismatch: sha256:ab436c33"),
        ({"chart": "queue"}, "registry.k8s.io/kueue/charts/queue:0.19.2: not found"),
        ({"repository": "oci://registry.k8s.io/charts"}, "registry.k8s.io/charts/kueue:0.19.2: not found"),
        ({"chart": "./charts/none", "repository": None}, "path './charts/none' not found"),
    ],
)
def test_a_chart_that_is_not_there_is_refused_at_plan(deployed: FakeCloud, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(Refusal, match="Error locating chart") as refused:
        deployed.plan(KUEUE, **changes)
    assert words in refused.value.detail


def test_a_mirror_of_the_charts_will_do(deployed: FakeCloud) -> None:
    deployed.plan(KUEUE, repository="oci://registry.example.com/mirror/kueue/charts")


def test_a_namespace_is_made_only_when_asked_for(deployed: FakeCloud, tmp_path: Path) -> None:
    path = chart(tmp_path / "mine", "pass", "post-install")
    with pytest.raises(Refusal, match="installation failed") as refused:
        deployed.make("helm_release.x", **release(path, namespace="nowhere"))
    assert refused.value.detail == 'create: failed to create: namespaces "nowhere" not found'
    deployed.make("helm_release.x", **release(path, namespace="somewhere", create_namespace=True))
    assert Api(deployed.cloud, CLUSTER).exists(NAMESPACE, "", "somewhere")


def test_a_name_in_use_is_refused(deployed: FakeCloud) -> None:
    with pytest.raises(Refusal) as refused:
        deployed.make("helm_release.two", like=KUEUE)
    assert refused.value.detail == "cannot re-use a name that is still in use"


def test_a_name_longer_than_53_is_refused(deployed: FakeCloud, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="invalid release name"):
        deployed.make("helm_release.x", **release(chart(tmp_path / "c", "pass", "post-install"), name="n" * 54))


def test_helm_needs_the_cluster(deployed: FakeCloud) -> None:
    deployed.settings["helm"]["kubernetes"]["host"] = "https://nowhere"
    with pytest.raises(Refusal, match=r"Kubernetes cluster unreachable: .*lookup nowhere: no such host"):
        deployed.read(KUEUE)


def test_kueues_crds_go_with_its_release_and_every_queue_with_them(deployed: FakeCloud, api: Api) -> None:
    deployed.destroy(KUEUE)
    assert not api.exists(CRD, "", "clusterqueues.kueue.x-k8s.io")
    assert [item for item in api.everything() if item["apiVersion"].startswith("kueue")] == []


def test_jobsets_crd_stays_when_its_release_goes(deployed: FakeCloud, api: Api) -> None:
    deployed.destroy(JOBSET)
    assert api.exists(CRD, "", "jobsets.jobset.x-k8s.io")


def test_a_chart_whose_pods_find_no_node_never_gets_ready(deployed: FakeCloud, api: Api) -> None:
    values = json.dumps({"controllerManager": {"nodeSelector": {"tpuenv/pool-group": "gpu"}}})
    with pytest.raises(Refusal, match="Error upgrading chart") as refused:
        deployed.change(KUEUE, values=[values])
    assert "the pods of kueue are pending: no node pool with tpuenv/pool-group=gpu" in refused.value.detail


def test_controllers_do_not_land_on_tpu_hosts(deployed: FakeCloud) -> None:
    deployed.destroy("google_container_node_pool.cpu-pool")
    with pytest.raises(Refusal) as refused:
        deployed.change(JOBSET, values=[])
    assert "no node pool with any labels whose taints they tolerate (none)" in refused.value.detail


@pytest.mark.parametrize("address", [KUEUE, JOBSET])
def test_controllers_start_on_the_system_pool_and_nowhere_else(deployed: FakeCloud, address: str) -> None:
    deployed.change(address, timeout=600)
    deployed.destroy("google_container_node_pool.system-pool")
    with pytest.raises(Refusal) as refused:
        deployed.change(address, timeout=900)
    words = "no node pool with tpuenv/pool-group=system whose taints they tolerate (tpuenv/system)"
    assert words in refused.value.detail


def test_the_gate_starts_on_the_system_pool_too(deployed: FakeCloud) -> None:
    (gate,) = (address for address in deployed.resources if address.startswith("helm_release.gate_"))
    deployed.destroy("google_container_node_pool.system-pool")
    with pytest.raises(Refusal) as refused:
        deployed.change(gate, timeout=900)
    assert "the pods of gate are pending: no node pool with tpuenv/pool-group=system" in refused.value.detail


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda config: config.update(queueVisibility={}), 'unknown field "queueVisibility"'),
        (lambda config: config.update(waitForPodsReady={"enable": True}), 'unknown field "waitForPodsReady.enable"'),
        (lambda config: config.update(waitForPodsReady={}), "waitForPodsReady.timeout: Required value"),
        (lambda config: config.update(waitForPodsReady={"timeout": "1d"}), 'time: invalid duration "1d"'),
        (
            lambda config: config.update(apiVersion="config.kueue.x-k8s.io/v1beta1"),
            "is not a config.kueue.x-k8s.io/v1beta2",
        ),
    ],
)
def test_a_configuration_that_kueue_does_not_start_with(deployed: FakeCloud, edit: Any, words: str) -> None:
    values = json.loads(deployed.resources[KUEUE].config["values"][0])
    config = yaml.safe_load(values["managerConfig"]["controllerManagerConfigYaml"])
    edit(config)
    values["managerConfig"]["controllerManagerConfigYaml"] = yaml.safe_dump(config)
    with pytest.raises(Refusal) as refused:
        deployed.change(KUEUE, values=[json.dumps(values)])
    assert words in refused.value.detail


def test_a_program_gets_its_values_and_the_api_server(deployed: FakeCloud, tmp_path: Path) -> None:
    program = f"""
import json, os, urllib.request
with urllib.request.urlopen(os.environ["KUBERNETES_API"] + "/api/v1/namespaces/tpu-training") as reply:
    found = json.load(reply)["metadata"]["name"]
told = [json.loads(os.environ["VALUES"]), os.environ["RELEASE_NAMESPACE"], found, sorted(os.environ)]
open({str(tmp_path / "told")!r}, "w").write(json.dumps(told))
"""
    more = {"values": ["deep: {b: 3}"], "set": [{"name": "deep.c", "value": "4"}]}
    deployed.make("helm_release.x", **release(chart(tmp_path / "c", program, "post-install"), **more))
    values, namespace, found, variables = json.loads((tmp_path / "told").read_text())
    assert values == {"greeting": "hello", "deep": {"a": 1, "b": 3, "c": 4}}
    assert (namespace, found) == ("default", "tpu-training")
    assert set(variables) <= {"PATH", "VALUES", "RELEASE_NAMESPACE", "KUBERNETES_API", "LC_CTYPE"}


def test_a_program_that_fails_fails_the_release_with_its_last_words(deployed: FakeCloud, tmp_path: Path) -> None:
    path = chart(tmp_path / "c", "import sys; print('no luck'); sys.exit(3)", "post-install")
    with pytest.raises(Refusal, match="installation failed") as refused:
        deployed.make("helm_release.x", **release(path))
    assert refused.value.detail == "job mine failed: BackoffLimitExceeded\nno luck"
    assert refused.value.left is not None
    assert refused.value.left["status"] == "failed"


@pytest.mark.slow
def test_a_program_that_takes_too_long_is_ended(deployed: FakeCloud, tmp_path: Path) -> None:
    path = chart(tmp_path / "c", "import time; time.sleep(60)", "post-install")
    with pytest.raises(Refusal) as refused:
        deployed.make("helm_release.x", **release(path, timeout=1))
    assert "post-install timed out after 1 s" in refused.value.detail


def test_an_upgrade_runs_the_programs_for_upgrades(deployed: FakeCloud, tmp_path: Path) -> None:
    path = chart(tmp_path / "c", "import sys; sys.exit('up')", "post-upgrade")
    deployed.make("helm_release.x", **release(path))
    with pytest.raises(Refusal, match="Error upgrading chart") as refused:
        deployed.change("helm_release.x", values=["greeting: bye"])
    assert "up" in refused.value.detail


def test_a_failed_release_is_planned_again(deployed: FakeCloud, tmp_path: Path) -> None:
    """What the state says after a failed upgrade is what the cluster says: failed, and to be deployed."""
    path = chart(tmp_path / "c", "import sys; sys.exit('up')", "post-upgrade")
    deployed.make("helm_release.x", **release(path))
    with pytest.raises(Refusal):
        deployed.change("helm_release.x", values=["greeting: bye"])
    found = deployed.read("helm_release.x")
    assert found is not None
    assert found["status"] == "failed"


def test_a_program_before_deletion_is_the_one_that_was_installed(deployed: FakeCloud, tmp_path: Path) -> None:
    path = chart(tmp_path / "c", "import sys; sys.exit('not yet')", "pre-delete")
    deployed.make("helm_release.x", **release(path))
    (tmp_path / "c" / "files" / "run.py").write_text("pass")
    with pytest.raises(Refusal, match="Error uninstalling release") as refused:
        deployed.destroy("helm_release.x")
    assert "not yet" in refused.value.detail


def test_the_products_gate_waits_for_the_webhooks(deployed: FakeCloud, api: Api) -> None:
    webhooks.install(api, "kueue")
    webhooks.install(api, "jobset")
    deployed.change(GATE, values=[json.dumps({"teamNamespace": "tpu-training", "limitSeconds": 20})])
    assert api.cloud.get(webhooks.KIND, f"{CLUSTER}|kueue") == {"refusals": 0}
    assert api.cloud.get(webhooks.KIND, f"{CLUSTER}|jobset") == {"refusals": 0}


def test_the_products_drain_empties_its_queue_before_it_goes(deployed: FakeCloud, api: Api) -> None:
    api.create(job_set())
    deployed.destroy(DRAIN)
    deployed.destroy("kubernetes_manifest.clusterqueue-tpu-training")
    left = api.get(api.resource("jobset.x-k8s.io/v1alpha2", "JobSet"), "tpu-training", "train")
    assert left["spec"]["suspend"] is True


def test_set_and_values_are_part_of_the_plan(deployed: FakeCloud, tmp_path: Path) -> None:
    deployed.make("helm_release.x", **release(chart(tmp_path / "c", "pass", "post-install")))
    assert deployed.unchanged("helm_release.x")
    planned, replaced = deployed.plan("helm_release.x", values=["greeting: bye"])
    assert (planned["values"], planned["status"], replaced) == (["greeting: bye"], "deployed", [])
    assert deployed.plan("helm_release.x", name="other")[1] == [("name",)]


def test_kueue_before_jobset_is_a_warning(deployed: FakeCloud, api: Api) -> None:
    deployed.destroy(KUEUE)
    api.remove(api.get(CRD, "", "jobsets.jobset.x-k8s.io"))
    deployed.apply(deployed.resources[KUEUE])
    assert deployed.warnings == [
        "Kueue is installed before JobSet: its webhooks refuse JobSet's own jobs until they answer"
    ]
