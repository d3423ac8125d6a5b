"""States in the bucket: seen, mended, put back; with Google's client, in a fake Cloud Storage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bucket_ground import STATES, Ground, ground_in, state
from tpuenv.main import main
from tpuenv.state import versions


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    with ground_in(tmp_path, monkeypatch) as ground:
        yield ground


def test_versions_are_listed_newest_first_with_what_they_hold(
    ground: Ground, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, third = ground.states(state(1, "x"), b'{"version": 4, "ser', state(3, "x", "y"))
    assert main(["state", "versions"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "queues:"
    assert [int(line.split()[0]) for line in lines[2:]] == [third, second, first]
    assert lines[2].split()[3:] == ["3", "2", "a", "live"]
    assert "damaged: it is not JSON, or not all of it" in lines[3]
    assert lines[4].split()[3:] == ["1", "1", "a"]


def test_what_a_stack_owns_that_the_settings_no_longer_have_is_named(ground: Ground) -> None:
    ground.states(state(1, "x"))
    ground.write("tpu-vms/default.tfstate", state(3, "guard", "x", "y"))
    ground.write("pipeline/default.tfstate", state(4, "guard"))  # destroyed
    ground.write("cluster/default.tfstate", b"damaged")
    (line,) = versions.of_removed_stacks(ground.clients, ground.names, ["foundation", "queues"])
    assert line.startswith(
        "tpu-vms: the settings have no such stack any more, and 2 resources of it in the cloud may still"
    )
    assert "DELETION_PROTECTION=false tpuenv destroy tpu-vms -- --ignore-missing-stack-dependencies" in line
    assert "undo that change of the settings" in line


def test_the_stack_that_a_setting_switched_off_is_named_with_the_one_command_that_destroys_it(ground: Ground) -> None:
    ground.write("observability/default.tfstate", state(1, "x"))
    (line,) = versions.of_removed_stacks(ground.clients, ground.names, ["foundation", "queues"])
    assert line.endswith(
        "OBSERVABILITY=true DELETION_PROTECTION=false tpuenv destroy observability -- "
        "--ignore-missing-stack-dependencies"
    )


@pytest.mark.slow  # it synthesizes, in a process of its own
@pytest.mark.parametrize("arguments", [["versions", "nosuch"], ["restore", "nosuch", "1"]])
def test_a_name_that_no_stack_has_is_refused_with_the_names_of_the_stacks(
    ground: Ground, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert main(["state", *arguments]) == 2
    shown = capsys.readouterr()
    names = "foundation, cluster, platform, tpu-node-pools, queues, observability"
    assert shown.err.splitlines()[-1] == f"'nosuch': there is no such stack; there are {names}"
    assert shown.out == ""


@pytest.mark.slow  # as above
def test_a_stack_without_a_state_is_not_called_unknown(ground: Ground, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["state", "versions", "cluster"]) == 1
    assert "cluster: there is no state of it, and none was kept" in capsys.readouterr().err


def test_an_old_version_is_put_back_with_a_higher_serial_and_the_present_one_is_kept(
    ground: Ground, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *_ = ground.states(state(1, "x", "z"), state(7, "x", "y"))
    assert main(["state", "restore", "queues", str(first), "--yes"]) == 0
    said = capsys.readouterr().out
    assert "  - t.y would be in no state\n  + t.z\n" in said
    assert "Restored as serial 8" in said
    assert ground.live == versions.State(lineage="a", serial=8, addresses=("t.x", "t.z"))
    assert ground.kept == 3
    assert not ground.locked


def test_a_version_is_not_put_back_without_a_yes(ground: Ground, capsys: pytest.CaptureFixture[str]) -> None:
    first, _ = ground.states(state(1, "x"), state(2, "x", "y"))
    assert main(["state", "restore", "queues", str(first)]) == 1
    assert "there is no terminal to ask at" in capsys.readouterr().err
    assert ground.live.serial == 2


def test_a_held_lock_is_honoured(ground: Ground, capsys: pytest.CaptureFixture[str]) -> None:
    first, _ = ground.states(state(1, "x"), state(2, "x", "y"))
    ground.lock()
    assert main(["state", "restore", "queues", str(first), "--yes"]) == 1
    assert "Locked: the state of queues is held by ada@far-away, apply, since 2020" in capsys.readouterr().err
    assert ground.live.serial == 2
    assert ground.locked


def test_a_state_of_another_lineage_needs_to_be_meant(ground: Ground, capsys: pytest.CaptureFixture[str]) -> None:
    first, _ = ground.states(state(9, "x", lineage="b"), state(2, "y"))
    assert main(["state", "restore", "queues", str(first), "--yes"]) == 1
    assert "is of another lineage" in capsys.readouterr().err
    assert main(["state", "restore", "queues", str(first), "--yes", "--another-lineage"]) == 0
    assert (ground.live.lineage, ground.live.serial) == ("b", 10)


@pytest.mark.parametrize(("generation", "words"), [(7, "no version 7 is kept"), (0, "is no whole state")])
def test_a_version_that_is_not_there_or_damaged_is_not_put_back(
    ground: Ground, capsys: pytest.CaptureFixture[str], generation: int, words: str
) -> None:
    damaged, _ = ground.states(b"{", state(2, "x"))
    assert main(["state", "restore", "queues", str(generation or damaged), "--yes"]) == 1
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("damage", [b"", b'{"version": 4, "ser', b'{"version": 3}', b'{"version": 4, "serial": 1}'])
def test_a_damaged_state_gives_way_to_the_last_whole_version(ground: Ground, damage: bytes) -> None:
    ground.states(state(1, "x"), state(2, "x", "y"), b"{", damage)
    assert ground.mend()
    assert ground.live == versions.State(lineage="a", serial=3, addresses=("t.x", "t.y"))
    assert len(ground.asked) == 1
    assert ground.kept == 5


def test_without_a_yes_a_damaged_state_stays(ground: Ground) -> None:
    ground.states(state(1, "x"), b"{")
    assert not ground.mend(yes=False)
    assert ground.kept == 2


def test_a_damaged_state_of_which_nothing_whole_is_kept_is_moved_away(ground: Ground) -> None:
    ground.states(b"{")
    assert ground.mend()
    assert ground.cloud.blobs(STATES, name="tpu/queues/default.tfstate") == []
    assert ground.kept == 1


def test_a_state_that_was_deleted_comes_back(ground: Ground) -> None:
    ground.states(state(4, "x"))
    ground.cloud.delete_blob(STATES, "tpu/queues/default.tfstate", keep_old=True)
    assert ground.mend()
    assert ground.live.addresses == ("t.x",)


def test_an_empty_state_that_terraform_began_again_gives_way_to_the_one_before(ground: Ground) -> None:
    ground.states(state(4, "x"), state(1, lineage="b"))
    assert ground.mend()
    assert ground.live == versions.State(lineage="a", serial=5, addresses=("t.x",))


def test_a_state_begun_again_with_the_guard_alone_gives_way_to_the_one_before(
    ground: Ground, capsys: pytest.CaptureFixture[str]
) -> None:
    ground.states(state(4, "guard", "x"), state(1, lineage="b"), state(2, "guard", lineage="b"))
    assert ground.mend()
    said = capsys.readouterr().out
    assert "its state is gone; Terraform began a new one, which holds only terraform_data.guard" in said
    assert ground.live == versions.State(lineage="a", serial=5, addresses=("terraform_data.guard", "t.x"))


def test_a_state_begun_again_that_owns_something_stays_and_the_one_before_is_reported(
    ground: Ground, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *_ = ground.states(state(4, "x", "y"), state(1, lineage="b"), state(2, "guard", "y", lineage="b"))
    assert ground.mend()
    assert ground.asked == []
    assert ground.live.serial == 2
    assert f"from before Terraform began a new state, version {first} of " in capsys.readouterr().out


def test_a_damaged_state_does_not_give_way_to_an_empty_one_begun_again(ground: Ground) -> None:
    ground.states(state(4, "x"), state(1, lineage="b"), b"{")
    assert ground.mend()
    assert ground.live.addresses == ("t.x",)


@pytest.mark.parametrize(
    "contents",
    [
        [],
        [state(1, "guard", "x"), state(2, "guard")],
        [state(1, "x"), state(2)],  # after a destroy
        [state(1, "x"), state(1, "y", lineage="b")],  # begun again, and used
        [state(1, lineage="b"), state(1, "x")],
    ],
)
def test_a_state_with_nothing_wrong_is_left_alone(ground: Ground, contents: list[bytes]) -> None:
    ground.states(*contents)
    assert ground.mend()
    assert ground.asked == []
    assert ground.kept == len(contents)


def test_what_terraform_could_not_write_is_brought_in_once(ground: Ground) -> None:
    left = ground.folder / "errored.tfstate"
    ground.states(state(2, "x"))
    left.write_bytes(state(3, "x", "y"))
    assert ground.mend()
    assert ground.live == versions.State(lineage="a", serial=4, addresses=("t.x", "t.y"))
    assert not left.exists()
    assert ground.mend()
    assert len(ground.asked) == 1


def test_what_terraform_could_not_write_is_brought_in_over_a_state_begun_again(ground: Ground) -> None:
    ground.states(state(2, "x"), state(1, lineage="b"), state(2, "guard", lineage="b"))
    (ground.folder / "errored.tfstate").write_bytes(state(3, "x", "y"))
    assert ground.mend()
    assert ground.live.addresses == ("t.x", "t.y")


@pytest.mark.parametrize("content", [state(2, "x", "y"), state(9, "x", lineage="b"), b"{"])
def test_an_old_state_or_another_that_terraform_left_is_not_brought_in(ground: Ground, content: bytes) -> None:
    ground.states(state(2, "x"))
    (ground.folder / "errored.tfstate").write_bytes(content)
    assert ground.mend()
    assert ground.asked == []
    assert ground.live.addresses == ("t.x",)
