"""A rehearsal submits every workload that is there, each of its manifests, for every team and pool group."""

from __future__ import annotations

import pytest

from environment import Environment
from manifests.recipes import FOLDER, all_recipes
from manifests.render import render
from manifests.written_files import write_files
from tests.recipe_folders import recipes_with
from tests.rehearsal.conftest import FLEET
from tests.rehearsal.deployed import world_of
from tests.rehearsal.fake import FakeCloud
from tests.synthesis import Synthesis
from tpuenv.rehearsals.parts import Parts
from tpuenv.rehearsals.submissions import submit_workloads

CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {name: serve, namespace: "${NAMESPACE}"}
data: {hosts: "${HOSTS}"}
"""


def submitted(fake: FakeCloud, environment: Environment, **files: str) -> Parts:
    """The part of a rehearsal, with a recipe `serve` of these files beside hello-tpu."""
    recipes = all_recipes(recipes_with(fake.folder / "recipes", "serve", **files))
    world = world_of(environment, fake.folder)
    world._announced = {"address": fake.place.address}
    world.output.unlink(missing_ok=True)
    write_files(world.output / "manifests", render(environment, recipes))
    parts = Parts(world, environment)
    (cluster,) = fake.cloud.find("google_container_cluster")
    submit_workloads(parts, cluster.name)
    return parts


@pytest.fixture
def job() -> str:
    """hello-tpu's manifest, under a name of its own."""
    return (
        (FOLDER / "hello-tpu" / "jobset.yaml")
        .read_text(encoding="utf-8")
        .replace("name: ${NAME}", "name: serve")
        .replace("${MAX_RESTARTS}", "1")
    )


def flat(text: str) -> str:
    return " ".join(text.split())


def test_every_manifest_of_a_workload_is_submitted_and_named(
    deployed: FakeCloud, synthesis: Synthesis, job: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = submitted(deployed, synthesis.environment("default"), server=f"{CONFIG}---\n{job}", other=job)
    printed = flat(capsys.readouterr().out)
    admitted = "admitted: slice, 4 pods, on node pool tpu-0 in us-east5-b (4 hosts x 4 chips)"
    assert parts.problems == []
    assert printed == flat(
        f"""
        hello-tpu/jobset.yaml on pool group tpu tpu-training: {admitted}
        serve/other.yaml on pool group tpu tpu-training: {admitted}
        serve/server.yaml on pool group tpu tpu-training: created: ConfigMap serve {admitted}
        """
    ), "each finds the slices free"


def test_of_a_fleet_every_team_and_group_has_its_turn(fleet: FakeCloud, synthesis: Synthesis, job: str) -> None:
    assert submitted(fleet, synthesis.environment(FLEET), server=f"{CONFIG}---\n{job}").problems == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("${TOPOLOGY}", "8x8"), "never: selects cloud.google.com/gke-tpu-topology: 8x8; use 4x4"),
        (("replicas: ${SLICES}", "replicas: 9"), "never: "),
        (("replicas: ${SLICES}", "replcas: 1"), "refused: "),
        (("kind: JobSet", "kind: JobSt"), 'refused: no matches for kind "JobSt" in version'),
        (('  namespace: "${NAMESPACE}"\n', ""), "refused: it names no namespace; write namespace: ${NAMESPACE}"),
        (("failurePolicy:", "failurePolicy: {"), "is not YAML, line"),
        (("parallelism: ${HOSTS}", "parallelism: [1]"), "is not a whole number"),
    ],
)
def test_a_manifest_that_cannot_be_admitted_fails_with_the_words_of_check(
    change: tuple[str, str], words: str, deployed: FakeCloud, synthesis: Synthesis, job: str
) -> None:
    assert change[0] in job
    parts = submitted(deployed, synthesis.environment("default"), bad=job.replace(*change), good=job)
    (problem,) = parts.problems
    assert problem.startswith("tpu-training: serve/bad.yaml on tpu")
    assert words in problem
