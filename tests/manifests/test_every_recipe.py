"""What synthesis and `tpuenv render` make of every recipe that is there, in every case of tests/cases."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission import Verdict
from admission.workload import Field, containers_of, templates_of
from environment.settings.model import MOST_SLICES
from environment.tpu import slice_for, tpu_types
from environment.tpu_catalogue import GENERATIONS
from manifests.recipes import (
    KUSTOMIZATION,
    NAME_REFERENCES,
    Recipe,
    recipe_named,
)
from manifests.render import LONGEST_NAME, Run, render, rendered, unique_name
from tests.crd_schemas import errors_of
from tests.manifests.example_runs import DEFAULT, RECIPES, objects, run_of, runs, suiting
from tests.synthesis import CASES, Synthesis
from tests.yaml_files import documents_in
from tpuenv.jobs.check import answers
from tpuenv.jobs.manifests import Document
from vocabulary.keys import JOBSET_LABEL, TPU

IN_MAKE_TEST = ("default", "autopilot", "air-gapped", "three-teams-four-groups")
EVERY_RECIPE = pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)


def documents_of(run: Run) -> list[Document]:
    made = objects(rendered(run))
    return [Document(file="run.yaml", number=number, value=item) for number, item in enumerate(made, start=1)]


def test_no_name_is_left_to_fill_in() -> None:
    assert not any("${" in text for text in render(DEFAULT).values())


@pytest.mark.parametrize("case", CASES)
def test_every_recipe_is_a_kustomize_base_for_every_team_and_group_that_it_may_use(
    case: str, synthesis: Synthesis
) -> None:
    configured, written = synthesis.environment(case), synthesis.manifests(case)
    bases = {
        Path(team.name, group, recipe.name): recipe
        for team in configured.teams
        for recipe in RECIPES
        if not recipe.required
        for group in ([*suiting(configured, recipe, team)] if recipe.tpu else ("cpu",))
    }
    assert {path.parent for path in written} == {*bases}
    for folder, recipe in bases.items():
        files = {path.name: text for path, text in written.items() if path.parent == folder}
        (kustomization,) = documents_in(files.pop(KUSTOMIZATION))
        (references,) = documents_in(files.pop(NAME_REFERENCES, "{}"))
        made = objects(files)
        assert kustomization == {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": [*files],
            **({"configurations": [NAME_REFERENCES]} if references else {}),
        }
        selectors = [item["spec"].get("selector", {}) for item in made if item["kind"] == "Service"]
        assert bool(references) == any(JOBSET_LABEL in selector for selector in selectors)
        names = [(item["kind"], item["metadata"]["name"]) for item in made]
        assert len({*names}) == len(names) > 0, "Kustomize takes each object once"
        assert {item["metadata"]["namespace"] for item in made} == {folder.parts[0]}
        assert all(name.startswith(recipe.name) for _, name in names), "a suffix renames all of a run"


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=() if case in IN_MAKE_TEST else pytest.mark.slow) for case in CASES]
)
@EVERY_RECIPE
def test_every_run_is_valid_to_the_last_key_and_admitted(recipe: Recipe, case: str, synthesis: Synthesis) -> None:
    for run, possible in runs(synthesis.environment(case), recipe):
        made = objects(rendered(run))
        assert [error for item in made for error in errors_of(item)] == []
        for answer in answers(run.environment, documents_of(run), ""):
            assert answer.problem == ""
            if answer.explanation and possible:
                good = (Verdict.ADMITTED, Verdict.WAITS)
                assert answer.explanation.verdict in good, "\n".join(answer.explanation.lines())


def test_the_answer_is_never_where_a_team_asks_for_more_than_it_can_have(synthesis: Synthesis) -> None:
    configured = synthesis.environment("three-teams-four-groups")
    impossible = [run for run, possible in runs(configured, recipe_named("hello-tpu")) if not possible]
    for run in impossible:
        explanations = [answer.explanation for answer in answers(configured, documents_of(run), "")]
        assert [explanation and explanation.verdict for explanation in explanations] == [Verdict.NEVER]


@EVERY_RECIPE
def test_a_name_of_its_own_changes_nothing_but_the_names_of_the_objects(recipe: Recipe) -> None:
    """So a nameSuffix of Kustomize renames all of a run: what needs its name reads it from the labels of the pods.

    Kustomize renames what a Service selects, too, for the base says so.
    """
    plain, named = (objects(rendered(run_of(recipe, name=name))) for name in (None, "mine"))
    for before, after in zip(plain, named, strict=True):
        if after["kind"] == "Service":
            assert before["spec"]["selector"].pop(JOBSET_LABEL) == recipe.name
            assert after["spec"]["selector"].pop(JOBSET_LABEL) == "mine"
        assert before["metadata"].pop("name").startswith(recipe.name)
        assert after["metadata"].pop("name").startswith("mine")
    assert plain == named


@pytest.mark.parametrize("tpu_type", ["v6e-4", "v6e-16", "v5litepod-1", "v5litepod-32", "v4-32"])
@EVERY_RECIPE
def test_a_job_has_a_node_pool_to_itself_where_a_slice_is_several_hosts_and_only_there(
    recipe: Recipe, tpu_type: str
) -> None:
    """GKE puts several slices of one host into a pool that it creates itself."""
    group = dataclasses.replace(DEFAULT.groups[0], slice=slice_for(tpu_type))
    if not recipe.tpu or recipe.unsuited(group):
        return
    for item in objects(rendered(run_of(recipe, group=group))):
        for job in item["spec"].get("replicatedJobs", ()):
            annotations = job["template"].get("metadata", {}).get("annotations", {})
            exclusive = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool"}
            on_several_hosts = job["name"] == "slice" and group.slice.hosts > 1
            assert annotations == (exclusive if on_several_hosts else {}), job["name"]


@EVERY_RECIPE
def test_gke_finds_the_metrics_of_every_container_with_chips(recipe: Recipe) -> None:
    """GKE exports duty cycle and memory of containers that name libtpu's port.

    https://cloud.google.com/kubernetes-engine/docs/how-to/tpus#metrics
    """
    made = [Field(item) for item in objects(rendered(run_of(recipe)))]
    pods = [template.get("spec") for item in made for template in templates_of(item)]
    with_chips = [
        container for pod in pods for container in containers_of(pod) if container.get("resources", "limits", TPU).value
    ]
    assert bool(with_chips) == recipe.tpu
    for container in with_chips:
        assert 8431 in [port.get("containerPort").value for port in container.get("ports").items()], container.path


@EVERY_RECIPE
def test_autopilot_evicts_no_pod_of_a_batch_recipe_for_an_upgrade_or_a_scale_down(
    recipe: Recipe, synthesis: Synthesis
) -> None:
    """https://cloud.google.com/kubernetes-engine/docs/how-to/extended-duration-pods"""
    autopilot = synthesis.environment("autopilot")
    runs_until_cancelled = recipe.name in ("vllm", "saxml", "ray-cluster")
    for configured in (autopilot, DEFAULT):
        for run, _ in runs(configured, recipe):
            made = [Field(item) for item in objects(rendered(run))]
            templates = [template for item in made for template in templates_of(item) if template.value]
            kept = {
                template.get("metadata", "annotations").mapping().get("cluster-autoscaler.kubernetes.io/safe-to-evict")
                for template in templates
            }
            assert kept in ((set(), {None}) if runs_until_cancelled or configured is DEFAULT else ({"false"},))


def shell_words(text: str) -> list[str]:
    """What a shell makes of the text; nothing if it is no line of a shell."""
    try:
        return shlex.split(text)
    except ValueError:
        return []


@EVERY_RECIPE
def test_any_text_that_is_set_is_in_the_manifests_as_it_is(recipe: Recipe) -> None:
    """Parameters of the kind text stand between quotation marks, and on the line of a shell they are one word."""
    keys = [key for key, known in {**recipe.parameters, **recipe.arguments}.items() if known.kind == "text"]
    hard = "a: \"b\" # 'c' \\ {d}, [e]"
    for key in keys:
        made = objects(rendered(run_of(recipe, settings={key: hard})))
        assert any(hard in word for text in texts_in(made) for word in (text, *shell_words(text))), key


def texts_in(value: Any) -> Iterator[str]:
    """Every text in nested lists and mappings."""
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts_in(item)


@given(st.data())
def test_names_are_unique_and_fit_with_every_ending_on_the_largest_slices(data: st.DataObject) -> None:
    """Jobs are called {run}-{replicated job}-{slice}, pods add -{host}-{5 random characters}; 63 characters at most.

    https://github.com/kubernetes-sigs/jobset/blob/main/pkg/util/placement/placement.go
    """
    recipe = data.draw(st.sampled_from(RECIPES))
    short = dataclasses.replace(recipe, name="x" * data.draw(st.integers(1, 33)))
    assert unique_name(short) != unique_name(short)
    slices = (slice_for(name) for generation in GENERATIONS for name in tpu_types(generation))
    groups = (dataclasses.replace(DEFAULT.groups[0], name="g" * 38, slice=of, slices=MOST_SLICES) for of in slices)
    group = data.draw(st.sampled_from([group for group in groups if not recipe.unsuited(group)]))
    team = dataclasses.replace(DEFAULT.teams[0], name="t" * 63, pools=(group.name,))
    run = Run(
        recipe=recipe,
        environment=DEFAULT,
        team=team,
        group=group if recipe.tpu else None,
        slices=recipe.most_slices(group) if recipe.tpu else 1,
        name=data.draw(st.sampled_from([unique_name(short), "n" * LONGEST_NAME])),
        settings=recipe.required,
    )
    for item in objects(rendered(run)):
        assert len(item["metadata"]["name"]) <= 63, "also that of the headless Service"
        for job in item["spec"].get("replicatedJobs", []) if item["kind"] == "JobSet" else ():
            hosts = job["template"]["spec"].get("parallelism", 1)
            longest = f"{item['metadata']['name']}-{job['name']}-{job.get('replicas', 1) - 1}-{hosts - 1}-abcde"
            assert len(longest) <= 63, longest
