"""Cloud Build files are read as Cloud Build reads them; what is not supported is an error that names file and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from rehearsal.cloudbuild.config import TIMEOUT_SECONDS, Config, NotABuild, read
from rehearsal.cloudbuild.images import DOCKER, Images, NoSuchImage

DIGEST = "sha256:" + "a" * 64
BUILDER = f"registry.example/builder@{DIGEST}"
GOOD = """\
steps:
- id: one
  name: ${_BUILDER}
  entrypoint: python
  args: [-c, "print('$$HOME', '$_WORD', '${SHORT_SHA}')"]
options: {logging: GCS_ONLY}
substitutions: {_BUILDER: "", _WORD: fallback}
"""


def config(tmp_path: Path, text: str) -> Config:
    (tmp_path / "build.yaml").write_text(text)
    return read(tmp_path / "build.yaml")


def problems(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(NotABuild) as refused:
        config(tmp_path, text)
    return refused.value.problems


def test_what_is_not_said_is_what_cloud_build_takes(tmp_path: Path) -> None:
    build = config(tmp_path, GOOD)
    (step,) = build.steps
    assert (build.timeout, build.dynamic, build.logging) == (TIMEOUT_SECONDS, False, "GCS_ONLY")
    assert (step.wait_for, step.timeout, step.dir_, step.env) == (None, None, "", ())


def test_substitutions_are_made_and_two_dollars_are_one(tmp_path: Path) -> None:
    filled = config(tmp_path, GOOD).filled({"_BUILDER": BUILDER}, {"SHORT_SHA": "abc1234"})
    assert filled.steps[0].name == BUILDER
    assert filled.steps[0].args[1] == "print('$HOME', 'fallback', 'abc1234')"


def test_what_the_trigger_gives_wins_over_the_default(tmp_path: Path) -> None:
    assert "'given'" in config(tmp_path, GOOD).filled({"_WORD": "given"}, {}).steps[0].args[1]


def test_a_built_in_without_a_value_is_empty(tmp_path: Path) -> None:
    assert config(tmp_path, GOOD).filled({}, {}).steps[0].args[1] == "print('$HOME', 'fallback', '')"


def test_a_value_that_is_given_and_not_declared_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotABuild, match=r"build.yaml:7: substitutions: _OTHER is given and not declared"):
        config(tmp_path, GOOD).filled({"_OTHER": "x"}, {})


def test_a_value_may_use_others_only_where_the_file_says_dynamic(tmp_path: Path) -> None:
    text = GOOD.replace("_WORD: fallback", "_WORD: 'in ${_PLACE} of $PROJECT_ID', _PLACE: here")
    assert problems(tmp_path, text) == [
        "build.yaml:7: substitutions: a value has a $ in it, which needs options.dynamicSubstitutions: true"
    ]
    dynamic = text.replace("{logging: GCS_ONLY}", "{logging: GCS_ONLY, dynamicSubstitutions: true}")
    assert "'in here of p'" in config(tmp_path, dynamic).filled({}, {"PROJECT_ID": "p"}).steps[0].args[1]


def test_values_that_use_each_other_are_refused(tmp_path: Path) -> None:
    text = GOOD.replace("_WORD: fallback", "_WORD: $_PLACE, _PLACE: $_WORD")
    dynamic = text.replace("{logging: GCS_ONLY}", "{logging: GCS_ONLY, dynamicSubstitutions: true}")
    with pytest.raises(NotABuild, match="uses itself"):
        config(tmp_path, dynamic).filled({}, {})


STEP = "  entrypoint: python\n"

WRONG = {
    "a step without an image": ("  name: ${_BUILDER}\n", "  env: ['A=${_BUILDER}']\n", ":2: steps[0]: names no image"),
    "a key of Cloud Build's that swallows failures": (
        STEP, STEP + "  allowFailure: true\n",
        ":5: steps[0].allowFailure: is not supported by the rehearsal; a step that fails must fail the build",
    ),
    "allowed exit codes": (STEP, STEP + "  allowExitCodes: [1]\n", ":5: steps[0].allowExitCodes: is not supported"),
    "a script": (STEP, STEP + "  script: echo\n", ":5: steps[0].script: is not supported"),
    "a secret": (STEP, STEP + "  secretEnv: [A]\n", ":5: steps[0].secretEnv: is not supported by the rehearsal"),
    "volumes": (STEP, STEP + "  volumes: []\n", ":5: steps[0].volumes: is not supported"),
    "a key that nobody knows": (STEP, STEP + "  retries: 3\n", ":5: steps[0].retries: is not supported"),
    "an unsupported key of the file": ("steps:\n", "queueTtl: 60s\nsteps:\n", ":1: queueTtl: is not supported"),
    "artifacts": ("steps:\n", "artifacts: {}\nsteps:\n", ":1: artifacts: is not supported"),
    "an account of the file's own": (
        "steps:\n", "serviceAccount: me\nsteps:\n",
        ":1: serviceAccount: is not supported by the rehearsal; a build runs as the account of its trigger",
    ),
    "an unsupported option": (
        "logging: GCS_ONLY", "logging: GCS_ONLY, machineType: E2_HIGHCPU_8", ":6: options.machineType: is not",
    ),
    "loose substitutions": (
        "logging: GCS_ONLY", "logging: GCS_ONLY, substitutionOption: ALLOW_LOOSE",
        ":6: options.substitutionOption: only MUST_MATCH is supported",
    ),
    "logs elsewhere": ("GCS_ONLY", "LEGACY", ":6: options.logging: only CLOUD_LOGGING_ONLY and GCS_ONLY is supported"),
    "a substitution that is not declared": (
        "'$_WORD'", "'$_WORD$_OTHER'", ":7: substitutions: _OTHER is used and not declared",
    ),
    "a built-in one that does not exist": (
        "SHORT_SHA", "SHORT_SHAH", ":7: substitutions: SHORT_SHAH is used and not declared",
    ),
    "a substitution that is not used": (
        "_WORD: fallback", "_WORD: fallback, _MORE: x", ":7: substitutions: _MORE is declared and not used",
    ),
    "a dollar that begins nothing": ("'$$HOME'", "'$(date)'", ":7: substitutions: somewhere in the file a $ begins no"),
    "an expansion of the shell's": ("'$_WORD'", "'${_WORD:0:3}'", ":7: substitutions: somewhere in the file a $"),
    "a name in small letters": ("_WORD: fallback", "_WORD: '', _word: x", ":7: substitutions._word: own substitutions"),
    "a value that is a number": ("_WORD: fallback", "_WORD: 3", ":7: substitutions._WORD: is not text; put"),
    "an argument that is a number": ("[-c,", "[3,", ":5: steps[0].args: is not text; put it in quotes"),
    "arguments that are no list": ("args: [-c,", "args: [[-c],", ":5: steps[0].args: is not text"),
    "a time without its unit": ("steps:\n", "timeout: '600'\nsteps:\n", ":1: timeout: is not a time such as 600s"),
    "a time that is a number": ("steps:\n", "timeout: 600\nsteps:\n", ":1: timeout: is not text"),
    "more than a day": ("steps:\n", "timeout: 86401s\nsteps:\n", ":1: timeout: is not a time such as 600s, of at most"),
    "a step that may outlast the build": (
        "steps:\n- id: one\n", "timeout: 60s\nsteps:\n- id: one\n  timeout: 61s\n",
        ":1: Step #0 - 'one' may take 61 s and the build only 60 s",
    ),
    "a step to wait for that is not before": (
        STEP, STEP + "  waitFor: [two]\n", ":5: steps[0].waitFor: no step before has the id 'two'",
    ),
    "an id twice": (
        "options:", "- {id: one, name: '${_BUILDER}'}\noptions:", ":6: steps[1].id: 'one' is the id of a step before",
    ),
    "a folder outside of the workspace": (STEP, STEP + "  dir: ../x\n", ":5: steps[0].dir: only folders of the"),
    "a variable without a value": (STEP, STEP + "  env: [A]\n", ":5: steps[0].env: 'A' is not NAME=VALUE"),
    "a key twice": (STEP, STEP + STEP, ":2: steps[0]: entrypoint is there twice"),
    "two documents": ("options:", "---\noptions:", ":7: the file begins a second document"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "problem"), WRONG.values(), ids=list(WRONG))
def test_a_mistake_is_reported_with_file_line_and_key(tmp_path: Path, old: str, new: str, problem: str) -> None:
    assert old in GOOD
    reported = problems(tmp_path, GOOD.replace(old, new, 1))
    assert len([line for line in reported if f"build.yaml{problem}" in line]) == 1, reported


def test_a_file_without_steps_is_refused(tmp_path: Path) -> None:
    assert "build.yaml:1: steps: there are no steps" in problems(tmp_path, "steps: []\noptions: {logging: GCS_ONLY}\n")


def test_all_mistakes_in_a_file_are_reported_at_once(tmp_path: Path) -> None:
    text = GOOD.replace("'$_WORD'", "'$_ONE $_TWO'").replace("steps:\n", "queueTtl: 1s\nsteps:\n")
    assert len(problems(tmp_path, text)) == 4


def test_an_image_is_its_digest_and_only_the_builder_is_supported() -> None:
    images = Images(builder=BUILDER)
    assert images.program(BUILDER, "python").exists()
    for image, entrypoint, said in (
        ("registry.example/builder:latest", "python", "not an image by its digest"),
        (f"registry.example/other@{DIGEST}", "python", "is not the builder image"),
        ("", "python", "a step without an image"),
        (BUILDER, "bash", "bash: of the builder image these are supported: python"),
        (BUILDER, "", "no entrypoint"),
        ("gcr.io/cloud-builders/docker", "", "not an image by its digest"),
        (DOCKER, "", "needs Docker, which is not supported"),
    ):
        with pytest.raises(NoSuchImage, match=said.replace("(", r"\(")):
            images.program(image, entrypoint)
