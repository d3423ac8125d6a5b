"""`tpuenv recover` as a whole: a bucket that is gone, what it asks of whom, and what it says to do next."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import environment
from rehearsal.google.cloud_storage_api import BUCKET
from tests.bucket_ground import STATES, Ground, ground_in
from tpuenv.main import main
from tpuenv.recovery.import_ids import PlannedObject
from tpuenv.recovery.recovery import Recovery
from tpuenv.recovery.search import CloudObject, search_by_name
from tpuenv.terminal.dialog import Dialog

BOARD = "google_vertex_ai_tensorboard"
BOARDS = "projects/some-project/locations/us-central1/tensorboards"


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    with ground_in(tmp_path, monkeypatch) as ground:
        yield ground


@pytest.mark.parametrize(("new_bucket", "made"), [(False, False), (True, True)])
def test_with_yes_a_state_bucket_is_replaced_only_if_that_is_said(
    ground: Ground, capsys: pytest.CaptureFixture[str], new_bucket: bool, made: bool
) -> None:
    ground.cloud.delete(BUCKET, STATES)
    recovery = Recovery(
        environment=environment.load(ground.folder / "vars.env", {}), clients=ground.clients, stacks=[],
        dialog=Dialog(answer=lambda _: True, unattended=True), dry_run=False, new_bucket=new_bucket,
    )  # fmt: skip
    assert recovery.run() == (0 if made else 1)
    assert (ground.cloud.get(BUCKET, STATES) is not None) == made
    said = capsys.readouterr().out
    assert f"gcloud storage restore gs://{STATES}#GENERATION" in said
    assert ("tpuenv recover --yes --new-bucket" in said) != made


def test_after_a_recovery_a_deploy_goes_through_the_pipeline_if_there_is_one(
    ground: Ground, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (Path(__file__).parent.parent / "cases" / "pipeline.env").read_text(encoding="utf-8")
    (ground.folder / "vars.env").write_text(text)
    configured = environment.load(ground.folder / "vars.env", {"TF_STATE_BUCKET": STATES})
    dialog = Dialog(answer=lambda _: True, unattended=True)
    assert Recovery(environment=configured, clients=ground.clients, stacks=[], dialog=dialog, dry_run=False).run() == 0
    said = capsys.readouterr().out
    run = f"gcloud builds triggers run {configured.names.trigger('deploy')} --region="
    assert run in said
    assert f" --branch={configured.settings.build_branch}\n" in said
    assert "Next: tpuenv deploy" not in said


def test_without_a_terminal_nothing_is_done_unasked(ground: Ground, capsys: pytest.CaptureFixture[str]) -> None:
    ground.lock()
    assert main(["recover"]) == 1
    assert "there is no terminal to ask at; add --yes, or --dry-run" in capsys.readouterr().err
    assert ground.locked


@pytest.mark.parametrize(("named", "matches"), [([], 0), ([4], 1), ([1, 4], 2)])
def test_what_has_its_id_from_the_server_is_searched_by_its_name(
    ground: Ground, named: list[int], matches: int
) -> None:
    for number in range(1, 6):
        name = "tpu" if number in named else f"other-{number}"
        ground.cloud.put(BOARD, f"{BOARDS}/{number}", {"display_name": name})
    values = {"project": "some-project", "region": "us-central1", "display_name": "tpu"}
    objects: list[CloudObject] = []
    undecided: dict[str, str] = {}
    search_by_name(ground.clients, PlannedObject(address="x.y", type_=BOARD, values=values), objects, undecided)
    assert objects == ([CloudObject(address="x.y", id_=f"{BOARDS}/{named[0]}")] if matches == 1 else [])
    message = f"2 objects are named 'tpu': {BOARDS}/1, {BOARDS}/4." if matches == 2 else ""
    assert message in undecided.get("x.y", "")
    assert bool(undecided) == (matches == 2)


def test_without_a_bucket_the_message_says_what_gives_it_back(
    ground: Ground, capsys: pytest.CaptureFixture[str]
) -> None:
    ground.cloud.delete(BUCKET, STATES)
    assert main(["state", "versions"]) == 1
    assert "`tpuenv recover` says how to restore it" in capsys.readouterr().err
