"""`tpuenv why` names the cause and what to do in every situation, and reads without changing anything."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import parse_qsl

import pytest
import requests
import yaml
from requests.adapters import BaseAdapter

from environment import Environment
from manifests.recipes import all_recipes
from manifests.render import rendered
from rehearsal.http_server import Request, Response
from rehearsal.kubernetes.server import PREFIX, serve
from tests.rehearsal.deployed import api_of
from tests.rehearsal.fake import FakeCloud
from tests.synthesis import Synthesis
from tests.tpuenv.jobs.conftest import QUICK, Ground, act_as, quick
from tests.tpuenv.jobs.situations import Situation, make, situations
from tpuenv.jobs.diagnosis.answer import answer
from tpuenv.jobs.diagnosis.diagnose import diagnose
from tpuenv.jobs.diagnosis.snapshot import Snapshot, read_snapshot
from tpuenv.jobs.find_job import job_named
from tpuenv.jobs.read_jobs import read_teams
from tpuenv.jobs.runs import run_of
from tpuenv.kubernetes.client import Cluster
from tpuenv.kubernetes.connection import connect
from tpuenv.main import main
from vocabulary.keys import PRIORITY_LABEL

SITUATIONS = situations()


class InProcess(BaseAdapter):
    """Requests reach the fake API server without a socket, in the thread of the test: so its changes can be undone."""

    def __init__(self, fake: FakeCloud) -> None:
        super().__init__()
        self.fake = fake

    def send(self, request: requests.PreparedRequest, *_: object, **__: object) -> requests.Response:
        path, _, query = str(request.path_url).partition("?")
        asked = Request(method="GET", path=path, query=dict(parse_qsl(query)), headers={}, body=b"")
        answered = serve(self.fake.cloud, asked)
        response = requests.Response()
        response.status_code, response.raw, response.request = answered.status, io.BytesIO(answered.body), request
        return response

    def close(self) -> None:
        """Nothing is open."""


@contextmanager
def made(fake: FakeCloud, situation: Situation) -> Iterator[Cluster]:
    """The fake cluster in the situation, and afterwards as it was before."""

    class Undo(Exception):
        """Ends the transaction without keeping what it did."""

    session = requests.Session()
    session.mount("http://", InProcess(fake))
    api = api_of(fake)
    with suppress(Undo), fake.cloud.transaction():
        make(api, situation)
        yield Cluster(address=f"http://fake{PREFIX}{api.cluster}", name="fake", session=session, patience=QUICK)
        raise Undo


def lines_of(cluster: Cluster, environment: Environment, job: str = "train") -> list[str]:
    """What `tpuenv why` prints."""
    teams = [team.name for team in environment.teams]
    jobs, _ = read_teams(cluster, teams)
    return list(answer(cluster, read_snapshot(cluster, job_named(cluster, job, teams), jobs)))


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_first_line_has_the_cause_and_what_to_do(
    name: str, deployed_once: FakeCloud, fleet_once: FakeCloud, synthesis: Synthesis
) -> None:
    situation = SITUATIONS[name]
    is_fleet = situation.get("environment") == "fleet"
    fake, case = (fleet_once, "three-teams-four-groups") if is_fleet else (deployed_once, "default")
    with made(fake, situation) as cluster:
        first, *others = lines_of(cluster, synthesis.environment(case))
        job = job_named(cluster, "train", [situation["make"][-1].get("team", "tpu-training")])
        assert diagnose(Snapshot(job=job)), "without events and queues there is an answer too"
    assert first.partition(", ")[2] == " ".join(situation["says"].split())
    for words in situation.get("shows") or []:
        assert any(words in line for line in others), others


def test_no_recipe_of_ours_is_said_to_be_wrong(deployed_once: FakeCloud, synthesis: Synthesis) -> None:
    """Each runs, or waits for the slices that a job of a higher priority has."""
    environment = synthesis.environment("default")
    other = {"name": "other", "replicas": 2, "labels": {PRIORITY_LABEL: "veryhigh"}}
    for recipe in all_recipes():
        if recipe.tpu and recipe.unsuited(environment.groups[0]):
            continue
        settings = [f"{key}={value}" for key, value in recipe.required.items()]
        texts = rendered(run_of(environment, recipe.name, settings=settings, name="train"))
        firsts = []
        for before in ([], [other]):
            with made(deployed_once, {"make": before}) as cluster:
                for text in texts.values():
                    for document in yaml.safe_load_all(text):
                        api_of(deployed_once).create(document)
                firsts.append(lines_of(cluster, environment)[0])
        runs = r"(all \d+ (hosts|pods) run|its (host|pod) runs)$"
        assert re.search(runs, firsts[0]), recipe.name
        assert re.search(r"in use by other \(2 slices\)" if recipe.tpu else runs, firsts[1]), recipe.name


def test_there_are_situations_of_every_family_of_causes() -> None:
    assert len(SITUATIONS) > 70
    assert all(situation.get("says") for situation in SITUATIONS.values())


@pytest.fixture
def default_settings(monkeypatch: pytest.MonkeyPatch, at_once: None) -> None:
    monkeypatch.setenv("TPU_TYPE", "v6e-16")


@pytest.mark.usefixtures("default_settings")
def test_the_command_answers_and_changes_nothing(ground: Ground, capsys: pytest.CaptureFixture[str]) -> None:
    make(ground.api, SITUATIONS["program-failed-on-one-host"])
    assert main(["why", "train"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("JobSet tpu-training/train, failed: slice 0, host 2 ended with exit code 1")
    assert lines[-1] == "    ValueError: no such dataset"
    assert all(request.startswith("GET ") for request in ground.requests)


@pytest.mark.usefixtures("default_settings")
def test_a_log_that_no_node_gives_any_more_does_not_hide_the_cause(
    ground: Ground, capsys: pytest.CaptureFixture[str]
) -> None:
    make(ground.api, SITUATIONS["program-failed-on-one-host"])
    lost = Response(status=500, body=b"dial tcp 10.0.0.7:10250: connect: connection refused")
    ground.before.append(lambda request: lost if request.path.endswith("/log") else None)
    assert main(["why", "train"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("JobSet tpu-training/train, failed: slice 0, host 2 ended with exit code 1")
    assert lines[-1].startswith("    none: ") and "connection refused" in lines[-1]


@pytest.mark.usefixtures("default_settings")
def test_an_unknown_job_is_refused_with_the_nearest_name(ground: Ground, capsys: pytest.CaptureFixture[str]) -> None:
    make(ground.api, SITUATIONS["runs"])
    assert main(["why", "trian"]) == 2
    assert "there is no job 'trian'; did you mean 'train'?" in capsys.readouterr().err


def test_a_member_of_a_team_gets_the_same_answer_without_nodes(
    fleet: Ground, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make(fleet.api, SITUATIONS["quota-in-use-by-another-team"])
    act_as("alice@example.com", monkeypatch)
    cluster = quick(connect(fleet.environment))
    jobs, _ = read_teams(cluster, ["research"])
    first, *others = answer(cluster, read_snapshot(cluster, jobs[0], jobs))
    assert first.startswith("JobSet research/train, waiting: it waits for 3 slices of dev, in use by team students")
    assert others[-1] == "  note: not allowed to read nodes: whether the machines are healthy is not known"


def test_what_the_cluster_says_is_printed_safely(deployed_once: FakeCloud, synthesis: Synthesis) -> None:
    situation = {**SITUATIONS["pods-are-refused"]}
    event = {**situation["events"][0], "message": "Error creating: \x1b[2J{where}{0}%s " + "x" * 5000}
    with made(deployed_once, {**situation, "events": [event]}) as cluster:
        first = lines_of(cluster, synthesis.environment("default"))[0]
    assert "\x1b" not in first
    assert "\\x1b[2J" in first
    assert len(first) < 1000
