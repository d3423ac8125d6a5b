"""Which folders are recipes, and every mistake in one, at its line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from manifests.mesh import MeshPart
from manifests.recipes import FOLDER, BadManifest, Recipe, all_recipes, recipe_named
from tests.recipe_folders import recipes_with


def mistakes(folder: Path) -> list[str]:
    with pytest.raises(BadManifest) as bad:
        all_recipes(folder)
    return str(bad.value).splitlines()


@pytest.mark.parametrize("recipe", all_recipes(), ids=lambda recipe: recipe.name)
def test_each_recipe_says_in_a_line_what_it_is(recipe: Recipe) -> None:
    assert re.fullmatch(r"[A-Z].{20,110}\.", recipe.summary)


def test_the_slices_of_a_run_are_one_program_or_a_server_each_or_for_the_user() -> None:
    multislice = {recipe.name for recipe in all_recipes() if recipe.multislice}
    assert multislice == {"hello-tpu", "maxtext", "ray-jax", "ray-maxtext"}
    assert multislice >= {recipe.name for recipe in all_recipes() if recipe.mesh.across_slices}


def test_a_folder_with_a_yaml_file_is_a_recipe_and_hidden_ones_and_caches_are_not(tmp_path: Path) -> None:
    folder = recipes_with(tmp_path, "serve", server="a: 1\n", client="a: 2\n")
    for name in (".git", "__pycache__", "shared"):
        (folder / name).mkdir()
    for name in (".git", "__pycache__"):
        (folder / name / "a.yaml").write_text("a: ${NOPE}\n")
    (folder / "shared" / "program.py").write_text("")
    (folder / "serve" / "configs").mkdir()
    (folder / "serve" / "configs" / "model.yaml").write_text("a: ${NOPE}\n")
    assert [recipe.name for recipe in all_recipes(folder)] == ["hello-tpu", "serve"]
    assert dict(recipe_named("serve", folder).manifests) == {"client.yaml": "a: 2\n", "server.yaml": "a: 1\n"}


def test_a_recipe_is_what_its_parameters_file_says(tmp_path: Path) -> None:
    parameters = """
        summary: Serves a model.
        generations: [v5e, tpu7x]
        hosts: 4
        multislice: true
        images: [hello-tpu]
        parameters:
          restarts: {default: 010, kind: count, help: a}
          to: {required: yes, example: b, kind: text, help: a}
        arguments: {rate: {default: 3e-5, kind: number, help: a}, how: {kind: choice, choices: [fast, slow], help: a}}
        more_arguments: keys.txt
        mesh: {within_slice: {keys: [ici_a, ici_b], rest: ici_a}}
        presets: {small: {rate: 1, extra: a}}
        preset: small
        """
    folder = recipes_with(tmp_path, "serve", server="a: 1\n", parameters=parameters)
    (folder / "serve" / "keys.txt").write_text("extra\nrate\nother\nrestarts\nici_a\n")
    recipe = recipe_named("serve", folder)
    assert (recipe.summary, recipe.tpu, recipe.images) == ("Serves a model.", True, ("hello-tpu",))
    assert (recipe.generations, recipe.hosts, recipe.multislice) == (("v5e", "tpu7x"), 4, True)
    assert recipe.parameters["restarts"].default == "10"
    assert recipe.required == {"to": "b"}
    assert (recipe.arguments["rate"].default, recipe.arguments["how"].choices) == ("3e-5", ("fast", "slow"))
    assert recipe.mesh.within_slice == MeshPart(keys=("ici_a", "ici_b"), rest="ici_a")
    assert recipe.mesh.across_slices is None
    assert (recipe.presets, recipe.preset) == ({"small": {"rate": "1", "extra": "a"}}, "small")
    assert recipe.keys == ("restarts", "to", "rate", "how", "ici_a", "ici_b", "extra", "other")


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("", "1: is empty; it should hold summary, tpu, "),
        ("- a", "1: is a list; it should hold summary, tpu, "),
        ("a: [", "1: is not YAML: "),
        ("sumary: a", "1: sumary: is not a key; did you mean 'summary'?"),
        ("tpu: maybe", "1: tpu: 'maybe' is neither true nor false"),
        ("generations: [v6]", "generations: 'v6' is no generation of TPUs; did you mean 'v6e'?"),
        ("hosts: 0", "1: hosts: '0' is not a whole number from 1 to 999999999"),
        ("tpu: false\nhosts: 1", "2: hosts: is about TPUs, and the recipe has tpu: false; remove one of them"),
        ("tpu: false\nmultislice: true", "2: multislice: is about TPUs, and the recipe has tpu: false; remove one of "),
        ("images: [nope]", "images: there is no recipe 'nope'; there are hello-tpu, serve"),
        ("arguments: {a: {kind: size, help: b}}", "1: arguments.a.kind: 'size' is no kind; there are count, number, "),
        ("arguments: {a: {kind: count}}", "1: arguments.a: needs a kind, which is one of count, number, flag, "),
        ("arguments: {a: {kind: count, help: b, defualt: 1}}", "1: arguments.a.defualt: is not a key; did you mean "),
        ("arguments: {a: {kind: count, help: b, default: -1}}", "default: '-1' is not a whole number from 0; "),
        ("arguments: {a: {kind: number, help: b, default: x}}", "default: 'x' is not a number; write one such as 0.5"),
        ("arguments: {a: {kind: flag, help: b, default: 1}}", "default: '1' is neither true nor false; write one"),
        ("arguments: {a: {kind: count, least: 1, help: b, default: 0}}", "default: '0' is too low; the least is 1"),
        ("arguments: {a: {kind: number, most: 2, help: b, default: 2.5}}", "'2.5' is too high; the most is 2"),
        ("arguments: {a: {kind: count, least: x, help: b}}", "1: arguments.a.least: 'x' is not a whole number from 0"),
        ("arguments: {a: {kind: text, most: 2, help: b}}", "1: arguments.a: has least or most, and its kind is not"),
        ("arguments: {a: {kind: choice, help: b}}", "1: arguments.a: has choices if and only if its kind is choice"),
        (
            "arguments: {a: {kind: choice, choices: [b, c], default: d, help: b}}",
            "1: arguments.a.default: 'd' is not one of the choices; there are b, c",
        ),
        (
            "arguments: {a: {kind: count, help: b, on_spot: -1, default: 1}}",
            "on_spot: '-1' is not a whole number from 0",
        ),
        (
            "arguments: {a: {kind: count, help: b, on_spot: 1}}",
            "1: arguments.a: has on_spot and no default; give it one",
        ),
        ("arguments: {a: {kind: count, help: b, required: true}}", "1: arguments.a: is required; give it an example"),
        ("parameters: {a: {kind: count, help: b}}", "1: parameters.a: has no default; give it one, or required: true"),
        ("arguments: {a-b: {kind: count, help: b}}", "1: 'a-b' cannot be a key; write letters, digits and underscores"),
        ("arguments: {preset: {kind: count, help: b}}", "no key can be called 'preset'"),
        (
            "arguments: {a: {kind: text, help: b}}\nparameters: {a: {kind: text, default: c, help: b}}",
            "1: the key 'a' is there 2 times; keep one",
        ),
        ("mesh: {within_slice: {keys: [a], rest: b}}", "1: mesh.within_slice: needs keys, and rest, which is one"),
        ("mesh: {in_slice: {keys: [a], rest: a}}", "1: mesh.in_slice: is not a key; did you mean 'within_slice'?"),
        ("presets: {a: {b: 1}}", "1: presets.a.b: is not a key; there are "),
        (
            "parameters: {a_b: {kind: count, default: 1, help: c}, A_b: {kind: count, default: 2, help: c}}",
            "1: parameters a_b and A_b are the same ${NAME}; rename one",
        ),
        (
            "tpu: false\nmesh: {within_slice: {keys: [a], rest: a}}",
            "2: mesh: divides TPUs, and the recipe has tpu: false; remove one of them",
        ),
        ("preset: a", "1: preset: there is no preset 'a'; there are "),
        ("more_arguments: nope.txt", "more_arguments: 'nope.txt': there is no such file in "),
        ("more_arguments: server.yaml", "more_arguments: 'server.yaml': 'a:' is no key; write one a line"),
    ],
)
def test_a_mistake_in_the_parameters_is_named_with_its_line_and_what_to_do(
    text: str, mistake: str, tmp_path: Path
) -> None:
    (line,) = mistakes(recipes_with(tmp_path, "serve", server="a: 1\n", parameters=text))
    assert line.startswith("manifests/serve/parameters.yaml:")
    assert mistake in line


def test_all_mistakes_of_all_recipes_are_named_at_once(tmp_path: Path) -> None:
    folder = recipes_with(tmp_path, "serve", server="a: 1\n", parameters="sumary: a\ntpu: maybe\n")
    recipes_with(tmp_path, "Serve", server="a: 1\n")
    (folder / "hello-tpu" / "jobset.yaml").write_bytes(b"a: \xff\n")
    (folder / "hello-tpu" / "kustomization.yaml").write_text("a: 1\n")
    assert [line.partition(": ")[0] for line in mistakes(folder)] == [
        "manifests/Serve",
        "manifests/hello-tpu/kustomization.yaml",
        "manifests/serve/parameters.yaml:1",
        "manifests/serve/parameters.yaml:2",
    ]
    (folder / "hello-tpu" / "kustomization.yaml").unlink()
    assert mistakes(folder)[1].startswith("manifests/hello-tpu/jobset.yaml: line 1 is not UTF-8")


@pytest.mark.parametrize("name", ["two\nlines", "a.yaml", "-a", "1a", "a" * 34, "ä", "serve\udcff"])
def test_a_name_that_no_run_could_have_is_refused_with_the_ones_that_can(name: str, tmp_path: Path) -> None:
    (line,) = mistakes(recipes_with(tmp_path, name, server="a: 1\n"))
    assert ": cannot name a recipe; rename it to at most 33 lower-case letters, digits and hyphens" in line
    assert line.isprintable()


def test_a_file_name_that_kustomize_would_not_take_is_refused(tmp_path: Path) -> None:
    (line,) = mistakes(recipes_with(tmp_path, "serve", **{"a\nb": "a: 1\n"}))
    assert line == r"manifests/serve/a\nb.yaml: rename it to letters, digits, dots, hyphens and underscores"


def test_a_folder_that_cannot_be_read_is_an_error_with_its_path(tmp_path: Path) -> None:
    assert mistakes(tmp_path / "nope") == [f"{tmp_path / 'nope'}: No such file or directory"]


def test_the_recipes_are_those_of_the_project() -> None:
    assert recipe_named("hello-tpu").folder == FOLDER / "hello-tpu"
