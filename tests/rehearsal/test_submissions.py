"""A rehearsal submits every recipe that is there, each of its manifests, for every team and pool group."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import environment
import rehearsal.jobs
from environment import Environment
from manifests.recipes import FOLDER, all_recipes
from manifests.render import render
from manifests.written_files import write_files
from rehearsal.jobs import delete
from rehearsal.kubernetes.api import Api
from tests.recipe_folders import recipes_with
from tests.rehearsal.conftest import FLEET
from tests.rehearsal.deployed import api_of, world_of
from tests.rehearsal.fake import FakeCloud
from tests.synthesis import Synthesis
from tpuenv.rehearsals.parts import Parts
from tpuenv.rehearsals.submissions import submit_recipes

CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {name: serve, namespace: "${NAMESPACE}"}
data: {hosts: "${HOSTS}"}
"""


CPU_JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: "${NAME}", namespace: "${NAMESPACE}", labels: {kueue.x-k8s.io/queue-name: "${QUEUE}"}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: copy, image: "${IMAGE}", args: ["${SOURCE}"], resources: {requests: {cpu: "1", memory: 1Gi}}}
"""


def submitted(fake: FakeCloud, environment: Environment, **files: str) -> Parts:
    """The part of a rehearsal, with a recipe `serve` of these files beside hello-tpu."""
    folder = recipes_with(fake.folder / "recipes", "serve", **files)
    (folder / "serve" / "Dockerfile").write_text("FROM scratch\n")
    recipes = all_recipes(folder)
    world = world_of(environment, fake.folder)
    world._announced = {"address": fake.place.address}
    world.output.unlink(missing_ok=True)
    write_files(world.output / "manifests", render(environment, recipes))
    parts = Parts(world, environment)
    (cluster,) = fake.cloud.find("google_container_cluster")
    submit_recipes(parts, cluster.name, recipes)
    return parts


@pytest.fixture
def job() -> str:
    """hello-tpu's manifest, without a key of its own."""
    return (FOLDER / "hello-tpu" / "jobset.yaml").read_text(encoding="utf-8").replace("${MAX_RESTARTS}", "1")


def flat(text: str) -> str:
    return " ".join(text.split())


def test_every_recipe_is_submitted_on_one_slice_and_on_all_and_placed_host_by_host(
    deployed: FakeCloud, synthesis: Synthesis, job: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = submitted(deployed, synthesis.environment("default"), server=f"{CONFIG}---\n{job}")
    printed = flat(capsys.readouterr().out)
    first, second = (f"node pool tpu-{number} in us-east5-b (hosts 0 to 3, 4 chips each)" for number in (0, 1))
    assert parts.problems == []
    assert printed == flat(
        f"""
        hello-tpu on 1 slice of pool group tpu tpu-training: admitted: slice, 4 pods, on {first}
        hello-tpu on 2 slices of pool group tpu tpu-training: admitted: slice, 8 pods, on {first}, {second}
        serve on 1 slice of pool group tpu
        tpu-training: created: ConfigMap serve admitted: slice, 4 pods, on {first}
        serve on 2 slices of pool group tpu
        tpu-training: created: ConfigMap serve admitted: slice, 8 pods, on {first}, {second}
        """
    ), "each finds the slices free"


@pytest.mark.parametrize("held", [True, False])
def test_recipes_wait_for_queues_that_are_held_and_for_no_others_that_are_stopped(
    deployed: FakeCloud, job: str, tmp_path: Path, held: bool
) -> None:
    api = api_of(deployed)
    queue = api.resource("kueue.x-k8s.io/v1beta2", "ClusterQueue")
    api.patch(queue, "", "tpu-training", {"spec": {"stopPolicy": "Hold"}})
    (tmp_path / "vars.env").write_text(f"PROJECT_ID=my-project\nHOLD_QUEUES={str(held).lower()}\n", encoding="utf-8")
    parts = submitted(deployed, environment.load(tmp_path / "vars.env", {}), server=job)
    waits = ["is not admitted: waits: " in problem for problem in parts.problems]
    assert waits == ([] if held else [True] * 4)


def test_every_manifest_of_a_recipe_is_submitted_in_the_order_of_the_files(
    deployed: FakeCloud, synthesis: Synthesis, job: str, capsys: pytest.CaptureFixture[str]
) -> None:
    other = job.replace("name: ${NAME}", 'name: "${NAME}-2"').replace("replicas: ${SLICES}", "replicas: 1")
    parts = submitted(deployed, synthesis.environment("default"), server=job, server2=other)
    assert parts.problems == []
    printed = flat(capsys.readouterr().out)
    assert re.search("serve on 1 slice .* node pool tpu-0 .* node pool tpu-1 .* serve on 2 slices", printed)
    assert "waits: chips of flavor tpu: in use by jobs" in printed.partition("serve on 2 slices")[2], "by the first"


def test_a_recipe_is_submitted_where_the_slices_suit_it_and_elsewhere_it_says_why_not(
    deployed: FakeCloud, synthesis: Synthesis, job: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = submitted(deployed, synthesis.environment("default"), server=job, parameters="generations: [v5e]\n")
    assert parts.problems == []
    assert flat(capsys.readouterr().out).endswith(
        "serve on 1 slice of pool group tpu not submitted: recipe serve runs on TPU v5e; a slice of pool group tpu "
        "(v6e-16) is v6e"
    )
    (cluster,) = deployed.cloud.find("google_container_cluster")
    running = Api(deployed.cloud, cluster.name).of_kind("JobSet")
    assert [body["metadata"]["name"] for body in running] == ["hello-tpu"], "the last that was submitted stays"


def test_a_recipe_of_the_cpu_pool_is_submitted_once_a_team_with_examples_of_what_must_be_set(
    fleet: FakeCloud, synthesis: Synthesis, capsys: pytest.CaptureFixture[str]
) -> None:
    parameters = 'tpu: false\nparameters: {source: {required: true, example: "gs://a/b", kind: text, help: a}}\n'
    parts = submitted(fleet, synthesis.environment(FLEET), server=CPU_JOB, parameters=parameters)
    assert parts.problems == []
    printed = flat(capsys.readouterr().out)
    assert re.search(r"serve on the CPU pool research, serving, students: admitted: main, 1 pod, on node pool", printed)
    assert printed.index("serve on the CPU pool") < printed.index("hello-tpu on"), "the jobs that stay use TPUs"


def test_a_recipe_whose_image_a_setting_leaves_out_is_not_submitted_and_no_problem(
    deployed: FakeCloud, synthesis: Synthesis, capsys: pytest.CaptureFixture[str], job: str
) -> None:
    environment = synthesis.environment("default")
    limited = replace(environment, settings=replace(environment.settings, allowed_images=("gcr.io/a/",)))
    parts = submitted(deployed, limited, server=CONFIG, jobset=job.replace('"${IMAGE}"', "docker.io/someone/serve:1"))
    assert parts.problems == []
    printed = flat(capsys.readouterr().out)
    assert "not submitted" in printed and "ALLOWED_IMAGES has no beginning of it" in printed


def test_what_still_runs_after_the_last_recipe_is_returned_so_that_it_can_be_deleted(
    deployed: FakeCloud, synthesis: Synthesis
) -> None:
    parts = submitted(deployed, synthesis.environment("default"), server=CONFIG)
    (cluster,) = deployed.cloud.find("google_container_cluster")
    (hello,) = (recipe for recipe in all_recipes() if recipe.name == "hello-tpu")
    created = submit_recipes(parts, cluster.name, [hello])
    assert [body["kind"] for body in created] == ["JobSet"]
    api = Api(deployed.cloud, cluster.name)
    assert api.of_kind("JobSet", "Workload")
    delete(parts.world, cluster.name, created)
    assert not api.of_kind("JobSet", "Workload")


def test_a_recipe_that_synthesis_did_not_render_is_a_problem(
    deployed: FakeCloud, synthesis: Synthesis, job: str
) -> None:
    parts = submitted(deployed, synthesis.environment("default"), server=job)
    parts.problems.clear()
    shutil.rmtree(parts.world.output / "manifests")
    (cluster,) = deployed.cloud.find("google_container_cluster")
    submit_recipes(parts, cluster.name)
    assert re.search(
        r"^tpu-training: hello-tpu on 1 slice of pool group tpu: there is no such file$", parts.problems[0]
    )


def test_of_a_fleet_every_team_and_group_has_its_turn(fleet: FakeCloud, synthesis: Synthesis, job: str) -> None:
    assert submitted(fleet, synthesis.environment(FLEET), server=f"{CONFIG}---\n{job}").problems == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            ("${NODE_SELECTOR}", "cloud.google.com/gke-tpu-topology: 8x8"),
            "never: selects cloud.google.com/gke-tpu-topology: 8x8; use 4x4",
        ),
        (("replicas: ${SLICES}", "replicas: 9"), "never: "),
        (("replicas: ${SLICES}", "replcas: 1"), "refused: "),
        (("kind: JobSet", "kind: JobSt"), 'refused: no matches for kind "JobSt" in version'),
        (('  namespace: "${NAMESPACE}"\n', ""), "refused: it names no namespace; write namespace: ${NAMESPACE}"),
        (("parallelism: ${HOSTS}", "parallelism: [1]"), "is not a whole number"),
    ],
)
def test_a_manifest_that_cannot_be_admitted_fails_with_the_words_of_check(
    change: tuple[str, str], words: str, deployed: FakeCloud, synthesis: Synthesis, job: str
) -> None:
    assert change[0] in job
    parts = submitted(deployed, synthesis.environment("default"), bad=job.replace(*change))
    one, two = parts.problems
    assert one.startswith("tpu-training: serve on 1 slice of pool group tpu")
    assert two.startswith("tpu-training: serve on 2 slices of pool group tpu")
    assert words in one and words in two


def test_the_slices_of_a_ray_job_are_free_when_it_ends_and_the_next_recipe_gets_them(
    deployed: FakeCloud, synthesis: Synthesis, capsys: pytest.CaptureFixture[str]
) -> None:
    ray_job = (FOLDER / "ray-jax" / "rayjob.yaml").read_text(encoding="utf-8").replace("${MAX_RESTARTS}", "0")
    parts = submitted(deployed, synthesis.environment("default"), server=ray_job)
    assert parts.problems == []
    printed = flat(capsys.readouterr().out)
    hosts = "node pool tpu-0 in us-east5-b (hosts 0 to 3, 4 chips each)"
    assert "serve on 1 slice of pool group tpu tpu-training: admitted: head, 1 pod, on node pool cpu" in printed
    assert f"admitted: slice, 4 pods, on {hosts} admitted: submitter, 1 pod, on node pool cpu" in printed


def test_pods_that_stay_on_a_slice_after_the_end_of_their_job_are_a_problem(
    deployed: FakeCloud, synthesis: Synthesis, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(rehearsal.jobs._SUCCEEDED, "JobSet", {})
    parts = submitted(deployed, synthesis.environment("default"), server=job)
    assert parts.problems[0] == (
        "hello-tpu on 1 slice of pool group tpu: after the end of its jobs their pods still hold 4 hosts of slices"
    )
