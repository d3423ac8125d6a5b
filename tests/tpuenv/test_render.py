"""`tpuenv render`: the manifest that it prints or writes, and what it refuses."""

from __future__ import annotations

import io
import os
import re
import stat
from pathlib import Path

import pytest
import yaml

from manifests.recipes import Recipe, all_recipes
from tests.synthesis import HERE
from tpuenv.main import main

FLEET = HERE / "cases" / "three-teams-four-groups.fleet.yaml"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of vars.env and fleet.yaml: the default environment, whose only team and pool group need no name."""
    (tmp_path / "settings").mkdir()
    default = (HERE / "cases" / "default.env").read_text(encoding="utf-8")
    (tmp_path / "settings" / "vars.env").write_text(default, encoding="utf-8")
    monkeypatch.setenv("TPUENV_FOLDER", str(tmp_path / "settings"))
    return tmp_path / "settings"


@pytest.fixture
def fleet(folder: Path) -> None:
    """Three teams and four pool groups instead."""
    settings = FLEET.with_name("three-teams-four-groups.env").read_text(encoding="utf-8")
    (folder / "vars.env").write_text(settings, encoding="utf-8")
    (folder / "fleet.yaml").write_text(FLEET.read_text(encoding="utf-8"), encoding="utf-8")


def test_the_manifest_of_a_run_is_printed_and_check_admits_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["render", "hello-tpu", "--slices", "2", "--set", "ici_model=4", "--set", "steps=3"]) == 0
    printed = capsys.readouterr()
    job_set = yaml.safe_load(printed.out)
    (replicated,) = job_set["spec"]["replicatedJobs"]
    (container,) = replicated["template"]["spec"]["template"]["spec"]["containers"]
    assert replicated["replicas"] == 2
    assert {"steps=3", "ici_data=4", "ici_model=4", "dcn_data=2"} <= {*container["args"]}
    assert printed.err.startswith("note: the image is named by its tag, and the manifest can be used as it is once")
    (tmp_path / "job.yaml").write_text(printed.out)
    assert main(["check", str(tmp_path / "job.yaml")]) == 0


def test_every_run_has_a_name_of_its_own_unless_it_is_given_one(capsys: pytest.CaptureFixture[str]) -> None:
    names = []
    for arguments in ([], [], ["--name", "mine"]):
        assert main(["render", "hello-tpu", *arguments]) == 0
        names.append(yaml.safe_load(capsys.readouterr().out)["metadata"]["name"])
    assert all(re.fullmatch("hello-tpu-[a-z2-7]{6}", name) for name in names[:2])
    assert (len({*names}), names[2]) == (3, "mine")


@pytest.mark.parametrize("recipe", all_recipes(), ids=lambda recipe: recipe.name)
def test_the_keys_of_a_recipe_are_listed_with_their_defaults(
    recipe: Recipe, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["render", recipe.name, "--keys"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{recipe.name}: ")
    for key, example in recipe.required.items():
        assert re.search(rf"^  {key} .* \(required, such as {re.escape(example)}\)$", printed, re.MULTILINE)
    if recipe.name == "hello-tpu":
        assert re.search(r"^  max_restarts +1 +How often a run .* again \(to 100000\)$", printed, re.MULTILINE)


def test_the_keys_are_listed_with_the_values_of_the_default_preset_their_choices_and_the_file_of_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["render", "maxtext", "--keys"]) == 0
    printed = capsys.readouterr().out
    assert "\nThe values are those of preset=llama3-8b, which is the default.\n" in printed
    assert re.search(r"^  model_name +llama3-8b +A model", printed, re.MULTILINE)
    assert re.search(r"^  dataset_type +synthetic +.*\(one of synthetic, grain, hf\)$", printed, re.MULTILINE)
    assert re.search(
        r"^  and the \d+ other keys of the program, in manifests/maxtext/keys\.txt$", printed, re.MULTILINE
    )
    assert printed.endswith("  (their values are checked when the program starts, and by `tpuenv fit maxtext`)\n")


def test_the_file_of_the_other_keys_is_named_by_its_shortest_path(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "ray-maxtext", "--keys"]) == 0
    assert "other keys of the program, in manifests/maxtext/keys.txt\n" in capsys.readouterr().out


def test_a_file_is_written_whole_in_place_of_the_one_that_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, link = tmp_path / "job.yaml", tmp_path / "link.yaml"
    file.write_text("old")
    file.chmod(0o640)
    link.symlink_to(file)
    assert main(["render", "hello-tpu", "--name", "mine", "-o", str(link)]) == 0
    assert yaml.safe_load(file.read_text())["metadata"]["name"] == "mine"
    assert (link.is_symlink(), stat.S_IMODE(file.stat().st_mode)) == (True, 0o640)
    assert capsys.readouterr().out == f"Wrote {link}: run mine. `kubectl create -f {link}` submits it.\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.yaml", "link.yaml", "settings"]


def test_a_name_that_a_shell_would_take_apart_is_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["render", "hello-tpu", "-o", "my job\x1b.yaml"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(r"Wrote my job\x1b.yaml: run ")
    assert r"`kubectl create -f 'my job\x1b.yaml'` submits it" in printed


def test_a_terminal_of_another_encoding_gets_a_manifest_of_the_same_meaning(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", terminal)
    assert main(["render", "copy-data", "--set", "source=gs://é/\u3042\U0001f600"]) == 0
    printed = terminal.buffer.getvalue().decode("ascii")
    (container,) = yaml.safe_load(printed)["spec"]["template"]["spec"]["containers"]
    assert "source=gs://é/\u3042\U0001f600" in container["args"]


def test_a_link_to_itself_is_an_error_and_no_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert main(["render", "hello-tpu", "-o", str(tmp_path / "loop")]) == 1
    assert f"-o: {tmp_path / 'loop'}: " in capsys.readouterr().err


def test_a_file_that_cannot_be_written_stays_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("mine")
    for path, reason in (
        (tmp_path, "Is a directory"),
        (tmp_path / "nowhere" / "a", "No such file or directory"),
        (tmp_path / "file" / "a", "Not a directory"),
    ):
        assert main(["render", "hello-tpu", "-o", str(path)]) == 1
        assert capsys.readouterr().err.endswith(f"\n-o: {path}: {reason}\n")
    assert (tmp_path / "file").read_text() == "mine"
    assert main(["render", "hello-tpu", "--slices", "9", "-o", str(tmp_path / "file")]) == 2
    assert (tmp_path / "file").read_text() == "mine"


def test_a_device_is_written_to_and_not_replaced() -> None:
    assert main(["render", "hello-tpu", "-o", os.devnull]) == 0
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


@pytest.mark.usefixtures("fleet")
def test_of_several_teams_and_groups_one_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "hello-tpu"]) == 2
    team, group = capsys.readouterr().err.splitlines()[-2:]
    assert team == "--team is missing; name one of research, serving, students"
    assert group == "--group is missing; name one of pretrain, dev, serve, burst"
    assert main(["render", "hello-tpu", "--team", "serving", "--group", "dev"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["metadata"]["namespace"] == "serving"


@pytest.mark.usefixtures("fleet")
@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (["helo-tpu"], ["there is no recipe 'helo-tpu'; did you mean 'hello-tpu'?"]),
        (
            ["hello-tpu", "--team", "reserch", "--group", "devs", "--set", "a", "--set", "b=1", "--set", "b=2"],
            [
                "--team: there is no team 'reserch'; did you mean 'research'?",
                "--group: there is no pool group 'devs'; did you mean 'dev'?",
                "--set: 'a' is not KEY=VALUE; write it so",
                "--set: b is set twice; keep one",
            ],
        ),
        (
            ["hello-tpu", "--team", "serving", "--group", "burst"],
            ["--group: team serving may not use pool group 'burst'; there are dev, serve"],
        ),
        (
            ["hello-tpu", "--team", "research", "--group", "dev", "--slices", "99", "--name", "A"],
            [
                "slices: '99' is not possible: pool group dev has 4 slices; use 1 to 4",
                "name: 'A' cannot name a run; use 1 to 40 lower-case letters, digits and hyphens, the first a letter, "
                "no hyphen last",
            ],
        ),
        (
            ["hello-tpu", "--team", "research", "--group", "dev", "--set", "stps=1", "--set", "ici_model=3"],
            [
                "stps: is not a key of recipe hello-tpu; did you mean 'steps'?",
                "ici_model=3 does not divide the 16 chips of a v6e-16 slice; use 1, 2, 4, 8 or 16",
            ],
        ),
    ],
)
def test_what_cannot_be_rendered_is_named_at_once_with_what_to_do(
    arguments: list[str], lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["render", *arguments]) == 2
    printed = capsys.readouterr()
    assert [line for line in printed.err.splitlines() if not line.startswith("warning: ")] == lines
    assert printed.out == ""
