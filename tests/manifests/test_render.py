"""How the manifests of a run are rendered."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import environment
from environment import CapacityMode
from environment.tpu import slice_for
from manifests.images import reference
from manifests.parameters import Parameter
from manifests.recipes import (
    FOLDER,
    KUSTOMIZATION,
    KUSTOMIZE_FILES,
    BadManifest,
    Recipe,
    UnknownRecipe,
    all_recipes,
    recipe_named,
)
from manifests.render import LONGEST_NAME, Run, arguments, render, rendered
from manifests.written_files import write_files
from tests.manifests.example_runs import DEFAULT, new_recipe, objects, run_of
from tests.recipe_folders import recipes_with
from tests.synthesis import HERE, Synthesis
from tests.yaml_files import documents_in
from vocabulary.keys import JOBSET_LABEL


@pytest.mark.parametrize("namespace", ["0", "null", "true", "1e3"])
def test_a_name_that_yaml_reads_as_something_else_stays_a_name(namespace: str) -> None:
    loaded = environment.load(HERE / "cases" / "default.env", {"NAMESPACE": namespace})
    for path, text in render(loaded).items():
        for document in documents_in(text) if not path.endswith(KUSTOMIZE_FILES) else ():
            assert document["metadata"]["namespace"] == namespace


@pytest.mark.parametrize("name", ["", "A", "-a", "a-", "1a", "a.b", "a" * (LONGEST_NAME + 1), "ä"])
def test_a_name_that_kubernetes_would_refuse_is_refused(name: str) -> None:
    with pytest.raises(BadManifest, match=r"^name: '.*' cannot name a run; use 1 to 40 "):
        rendered(run_of(recipe_named("hello-tpu"), name=name))


def test_the_words_of_the_program_are_those_in_the_manifest() -> None:
    run = run_of(recipe_named("hello-tpu"), slices=2, settings={"steps": "3", "ici_model": "4"})
    (job_set,) = objects(rendered(run))
    (container,) = job_set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"]
    assert container["args"] == [f"{key}={value}" for key, value in arguments(run).items()]
    assert {"steps=3", "ici_data=4", "ici_model=4", "dcn_data=2"} <= {*container["args"]}
    assert job_set["spec"]["replicatedJobs"][0]["replicas"] == 2


def test_slices_of_one_host_make_no_program_together(tmp_path: Path) -> None:
    """ "Multislice only supports multi-host TPU slice node pools."
    https://cloud.google.com/kubernetes-engine/docs/how-to/tpu-multislice
    """
    group = dataclasses.replace(DEFAULT.groups[0], slice=slice_for("v6e-4"), slices=3)
    program, servers = (new_recipe(tmp_path / text, f"multislice: {text}") for text in ("true", "false"))
    message = (
        r"^slices: '2' is not possible: recipe serve makes one program of its slices, and GKE joins only slices of "
        r"several hosts; a slice of pool group tpu \(v6e-4\) has 1; use 1$"
    )
    with pytest.raises(BadManifest, match=message):
        rendered(run_of(program, group=group, slices=2))
    assert rendered(run_of(program, group=group))
    assert rendered(run_of(servers, group=group, slices=2))
    several = dataclasses.replace(group, slice=slice_for("v6e-16"))
    assert rendered(run_of(program, group=several, slices=2))


def test_a_default_may_be_another_on_spot(tmp_path: Path) -> None:
    recipe = new_recipe(tmp_path, "arguments: {period: {default: 100, on_spot: 25, kind: count, least: 1, help: a}}")
    spot = dataclasses.replace(DEFAULT.groups[0], capacity=CapacityMode.SPOT)
    assert arguments(run_of(recipe)) == {"period": "100"}
    assert arguments(run_of(recipe, group=spot)) == {"period": "25"}
    assert arguments(run_of(recipe, group=spot, settings={"period": "60"})) == {"period": "60"}


@pytest.mark.parametrize("preset", ["llama3-8b", "sandbox-6.5b"])
def test_maxtext_writes_checkpoints_more_often_on_spot_where_there_is_no_time_for_a_last_one(preset: str) -> None:
    spot = dataclasses.replace(DEFAULT.groups[0], capacity=CapacityMode.SPOT)
    run = run_of(recipe_named("maxtext"), settings={"preset": preset})
    on_spot = arguments(dataclasses.replace(run, group=spot))["checkpoint_period"]
    assert int(on_spot) < int(arguments(run)["checkpoint_period"])


def test_what_is_set_wins_over_the_preset_and_that_over_the_default(tmp_path: Path) -> None:
    recipe = new_recipe(
        tmp_path,
        """
        parameters: {restarts: {default: 1, kind: count, help: a}}
        arguments:
          a: {default: 1, kind: count, help: a}
          b: {default: 1, kind: count, help: a}
          c: {kind: text, help: a}
        presets: {large: {a: 2, b: 2, restarts: 2}, small: {}}
        preset: large
        """,
        "restarts: ${RESTARTS}\nargs: ${ARGUMENTS}\n",
    )
    run = run_of(recipe, settings={"b": "3"})
    assert objects(rendered(run)) == [{"restarts": 2, "args": ["a=2", "b=3"]}]
    assert arguments(dataclasses.replace(run, settings={"preset": "small", "c": "x"})) == {"a": "1", "b": "1", "c": "x"}


@given(st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), max_size=40))
def test_any_text_that_is_set_arrives_as_it_is(text: str) -> None:
    if not text.isprintable():
        return
    texts = {"a.yaml": 'a: "${A}" # ${A}\nb:\n- args: ${ARGUMENTS}\n  c: 1\n'}
    key = Parameter(kind="text", help="a")
    recipe = Recipe(name="a", folder=FOLDER / "a", manifests=texts, parameters={"a": key}, arguments={"b": key})
    run = run_of(recipe, settings={"a": text.replace("${", "$${"), "b": text.replace("${", "$${")})
    assert objects(rendered(run)) == [{"a": text, "b": [{"args": [f"b={text}"], "c": 1}]}]


def test_a_default_names_what_is_derived(tmp_path: Path) -> None:
    recipe = new_recipe(tmp_path, 'arguments: {to: {default: "gs://${BUCKET}/${NAME}", kind: text, help: a}}')
    assert arguments(run_of(recipe, name="mine")) == {"to": "gs://my-project-tpu-tpu-training/mine"}


def test_an_image_is_named_by_its_tag_or_is_the_one_that_the_run_names(tmp_path: Path) -> None:
    recipe = new_recipe(tmp_path, "images: [hello-tpu]", "a: ${IMAGE}\nb: ${IMAGE_HELLO_TPU}\n")
    (recipe.folder / "Dockerfile").write_text("FROM scratch\n")
    own, other = (reference(DEFAULT, recipe.folder.with_name(name)) for name in ("serve", "hello-tpu"))
    assert objects(rendered(run_of(recipe))) == [{"a": own, "b": other}]
    (pinned,) = objects(rendered(run_of(recipe, images={"hello-tpu": "a@sha256:b"})))
    assert pinned == {"a": own, "b": "a@sha256:b"}


def test_a_dockerfile_that_cannot_name_an_image_is_refused(tmp_path: Path) -> None:
    recipe = new_recipe(tmp_path, "{}", "a: ${IMAGE}\n")
    (recipe.folder / "Dockerfile").write_text("FROM scratch\nADD a b\n")
    with pytest.raises(
        BadManifest, match=r"^recipe serve: manifests/serve/Dockerfile:2: ADD unpacks archives and downloads; use COPY$"
    ):
        render(DEFAULT, [recipe])


def test_a_recipe_without_a_dockerfile_has_no_image(tmp_path: Path) -> None:
    message = r"serve/server\.yaml:1: \$\{IMAGE\} needs a Dockerfile in manifests/serve, from which the image is built$"
    with pytest.raises(BadManifest, match=message):
        rendered(run_of(new_recipe(tmp_path, "{}", "a: ${IMAGE}\n")))


def test_a_recipe_of_the_cpu_pool_is_rendered_once_a_team_and_knows_no_tpus(tmp_path: Path) -> None:
    recipe = new_recipe(tmp_path, "tpu: false", "a: ${POOL_GROUP}\n")
    assert render(DEFAULT, [recipe])["tpu-training/cpu/serve/server.yaml"] == "a: cpu\n"
    wrong = dataclasses.replace(recipe, manifests={"server.yaml": "a: ${HOSTS}\n"})
    with pytest.raises(BadManifest, match=r"serve/server\.yaml:1: \$\{HOSTS\} is not a name that is filled in"):
        render(DEFAULT, [wrong])
    with pytest.raises(BadManifest, match=r"^recipe serve runs on the CPU pool; name no pool group, not 'tpu'$"):
        rendered(dataclasses.replace(run_of(recipe), group=DEFAULT.groups[0]))


def test_a_recipe_with_keys_that_must_be_set_is_not_rendered_without_them(tmp_path: Path) -> None:
    recipe = new_recipe(
        tmp_path,
        'parameters: {source: {required: true, example: "gs://a/b", kind: text, help: a}}',
        'a: "${SOURCE}"\n',
    )
    assert render(DEFAULT, [recipe]) == {}
    with pytest.raises(BadManifest, match=r"^source: has no default; set it, such as source=gs://a/b$"):
        rendered(dataclasses.replace(run_of(recipe), settings={}))
    assert rendered(run_of(recipe, settings={"source": "gs://c"})) == {"server.yaml": 'a: "gs://c"\n'}


def test_an_overlay_that_renames_a_run_renames_what_its_service_selects(tmp_path: Path) -> None:
    """Kustomize itself, where kubectl is installed."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed")
    manifest = f"""
        apiVersion: jobset.x-k8s.io/v1alpha2
        kind: JobSet
        metadata: {{name: "${{NAME}}"}}
        ---
        apiVersion: v1
        kind: Service
        metadata: {{name: "${{NAME}}-http"}}
        spec:
          selector:
            {JOBSET_LABEL}: ${{NAME}}
        """
    recipe = new_recipe(tmp_path, "summary: a", textwrap.dedent(manifest))
    write_files(tmp_path / "bases", render(DEFAULT, [recipe]))
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    (overlay / KUSTOMIZATION).write_text("resources: [../bases/tpu-training/tpu/serve]\nnameSuffix: -two\n")
    made = documents_in(subprocess.check_output([kubectl, "kustomize", str(overlay)], text=True))
    assert {item["metadata"]["name"] for item in made} == {"serve-two", "serve-http-two"}
    assert [item["spec"]["selector"] for item in made if item["kind"] == "Service"] == [{JOBSET_LABEL: "serve-two"}]


def test_every_mistake_of_a_run_is_named_at_once_with_what_to_do() -> None:
    settings = {"stps": "3", "size": "large", "ici_model": "3", "dcn_data": "two", "preset": "big"}
    with pytest.raises(BadManifest) as bad:
        arguments(run_of(recipe_named("hello-tpu"), settings=settings))
    assert str(bad.value).splitlines() == [
        "preset: there is no preset 'big'; recipe hello-tpu has no presets",
        "stps: is not a key of recipe hello-tpu; did you mean 'steps'?",
        "size: 'large' is not a whole number from 0; write one such as 100",
        "ici_model=3 does not divide the 16 chips of a v6e-16 slice; use 1, 2, 4, 8 or 16",
        "dcn_data: 'two' is not a whole number from 1, or -1 for what is left of the 1 slice of this run; write one",
    ]


def test_a_run_that_cannot_be_says_what_there_is() -> None:
    recipe, other = recipe_named("hello-tpu"), dataclasses.replace(DEFAULT.groups[0], name="other")
    with pytest.raises(BadManifest, match=r"^slices: '3' is not possible: pool group tpu has 2 slices; use 1 to 2$"):
        rendered(run_of(recipe, slices=3))
    with pytest.raises(BadManifest, match=r"^recipe hello-tpu runs on TPUs; name one of the pool groups tpu$"):
        rendered(dataclasses.replace(run_of(recipe), group=None))
    with pytest.raises(BadManifest, match=r"^team tpu-training may not use pool group 'other'; it may use tpu$"):
        rendered(dataclasses.replace(run_of(recipe), group=other))


def test_a_recipe_runs_only_on_slices_that_suit_it_and_says_which_do(tmp_path: Path, synthesis: Synthesis) -> None:
    recipe = new_recipe(tmp_path, "generations: [v5e, v6e]\nhosts: 2", "a: ${GENERATION}\n")
    several = synthesis.environment("three-teams-four-groups")
    groups = {group.name: group for group in several.groups}
    research, _, students = several.teams
    run = Run(recipe=recipe, environment=several, team=research, group=groups["dev"])
    with pytest.raises(BadManifest) as hosts:
        rendered(run)
    assert str(hosts.value) == (
        "recipe serve runs on slices of 2 hosts; a slice of pool group dev (v6e-16) has 4; use pool group serve"
    )
    with pytest.raises(BadManifest) as generation:
        rendered(dataclasses.replace(run, group=groups["pretrain"]))
    assert str(generation.value) == (
        "recipe serve runs on TPU v5e and v6e; a slice of pool group pretrain (v5p-256) is v5p; use pool group serve"
    )
    with pytest.raises(BadManifest, match=r"has 4; no pool group of team students suits it; add one to "):
        rendered(dataclasses.replace(run, team=students))
    assert {path.split("/")[1] for path in render(several, [recipe])} == {"serve"}, "the others are left out"
    assert rendered(dataclasses.replace(run, group=groups["serve"])) == {"server.yaml": "a: v6e\n"}


def test_a_key_that_is_near_none_of_many_says_what_lists_them() -> None:
    with pytest.raises(BadManifest, match=r"^lr: is not a key of recipe maxtext; `tpuenv render maxtext --keys` lists"):
        rendered(run_of(recipe_named("maxtext"), settings={"lr": "3"}))
    with pytest.raises(BadManifest, match=r"^learning_rat: is not a key .*; did you mean 'learning_rate'\?$"):
        rendered(run_of(recipe_named("maxtext"), settings={"learning_rat": "3"}))


def test_a_recipe_that_does_not_exist_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownRecipe, match=r"^there is no recipe 'helo-tpu'; did you mean 'hello-tpu'\?$"):
        recipe_named("helo-tpu")


def test_a_mistake_of_one_recipe_is_in_the_way_of_no_other(tmp_path: Path) -> None:
    folder = recipes_with(tmp_path, "serve", server="a: b\n", parameters="summary: [\n")
    assert recipe_named("hello-tpu", folder).name == "hello-tpu"
    for read in (lambda: recipe_named("serve", folder), lambda: all_recipes(folder)):
        with pytest.raises(BadManifest, match=r"^manifests/serve/parameters.yaml:2: "):
            read()


def test_a_name_that_does_not_exist_is_an_error_with_its_place(tmp_path: Path) -> None:
    folder = recipes_with(tmp_path, "serve", server="a: ${HOST}\nb: ${HOME}\n", client="a: ${}\nb: ${NOT CLOSED\n")
    with pytest.raises(BadManifest) as error:
        render(DEFAULT, all_recipes(folder))
    first, second, third, fourth = str(error.value).splitlines()
    assert first.startswith("manifests/serve/client.yaml:1: ${} is not a name that is filled in; ")
    assert second.startswith("manifests/serve/client.yaml:2: ${NOT CLOSED is not a name")
    assert third.startswith(
        "manifests/serve/server.yaml:1: ${HOST} is not a name that is filled in; did you mean ${HOSTS}?"
    )
    assert fourth.startswith("manifests/serve/server.yaml:2: ${HOME} is not a name")
    assert all(" ACCELERATOR, ARGUMENTS, BUCKET, CHIPS, " in line for line in (first, second, third, fourth))
    assert fourth.endswith("; write $${HOME} where the manifest itself needs that text")


def test_a_manifest_that_is_not_yaml_is_an_error_with_its_line(tmp_path: Path) -> None:
    manifest = "args: ${ARGUMENTS}\n---\na: 1\nname: ${NAME}\n  b: [\n"
    recipe = new_recipe(tmp_path, "arguments: {a: {kind: text, default: b, help: c}}", manifest)
    for fill in (lambda: rendered(run_of(recipe)), lambda: render(DEFAULT, [recipe])):
        with pytest.raises(BadManifest, match=r"\Amanifests/serve/server.yaml:5: is not YAML: .*not allowed here\Z"):
            fill()


@pytest.mark.parametrize("key", ["name", "Hosts", "image_hello_tpu", "arguments"])
def test_a_parameter_does_not_hide_what_is_derived(key: str, tmp_path: Path) -> None:
    parameters = f"images: [hello-tpu]\nparameters: {{{key}: {{kind: text, default: b, help: c}}}}"
    recipe = new_recipe(tmp_path, parameters, f"a: ${{{key.upper()}}}\n")
    said = rf"recipe serve: {key}: cannot be a parameter, for \${{{key.upper()}}} is derived; give it another name"
    with pytest.raises(BadManifest, match=said):
        render(DEFAULT, [recipe])


def test_a_mistake_in_the_values_of_a_recipe_names_the_recipe_in_a_synthesis(tmp_path: Path) -> None:
    mesh = "mesh: {within_slice: {keys: [a, b], rest: a}}\npresets: {c: {b: 3}}\npreset: c\n"
    with pytest.raises(BadManifest, match=r"\Arecipe serve: b=3 does not divide the 16 chips of a v6e-16 slice"):
        render(DEFAULT, [new_recipe(tmp_path, mesh)])


def test_a_key_that_must_be_set_is_not_set_to_nothing() -> None:
    with pytest.raises(BadManifest, match="source: has no default; set it, such as source=gs://my-datasets/"):
        rendered(run_of(recipe_named("copy-data"), settings={"source": ""}))


def test_what_is_no_name_stays(tmp_path: Path) -> None:
    recipe = new_recipe(tmp_path, "summary: a", "a: $${B} $(C) $D\n")
    assert rendered(run_of(recipe)) == {"server.yaml": "a: ${B} $(C) $D\n"}


def test_many_mistakes_are_counted_and_long_names_shortened(tmp_path: Path) -> None:
    names = "".join(f"a: ${{N{number}{'X' * 90}\a}}\n" for number in range(25))
    with pytest.raises(BadManifest) as error:
        render(DEFAULT, all_recipes(recipes_with(tmp_path, "serve", server=names)))
    lines = str(error.value).splitlines()
    assert (len(lines), lines[-1]) == (21, "and 5 more")
    assert f"1: ${{N0{'X' * 53}... is not a name that is filled in; there are ACCELERATOR" in lines[0]


def test_what_a_team_may_not_have_is_a_mistake_of_the_recipe_with_what_to_do(tmp_path: Path) -> None:
    manifest = (
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: '${NAME}', namespace: '${NAMESPACE}'}\nspec:\n  template:\n"
        "    spec: {hostPID: true, containers: [{name: a, image: a, securityContext: {privileged: true}}]}\n"
    )
    with pytest.raises(BadManifest) as bad:
        render(DEFAULT, [new_recipe(tmp_path / "rooted", "summary: Asks for its host.\n", manifest)])
    text = str(bad.value)
    assert "spec.template.spec.hostPID: is true: pods of teams have no access to their host: remove it" in text
    assert "securityContext.privileged: is true" in text
