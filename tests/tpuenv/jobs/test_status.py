"""`tpuenv status`: slices, queues and jobs of the fake cluster, as tables, as JSON, and again and again."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from rehearsal.http_server import Request, Response
from rehearsal.kubernetes.nodes import node_objects
from rehearsal.kubernetes.objects import KIND
from rehearsal.kubernetes.placement import all_nodes
from tests.synthesis import Synthesis
from tests.tpuenv.jobs.conftest import Ground, act_as, quick
from tests.tpuenv.jobs.situations import make, situations
from tpuenv.kubernetes.connection import connect
from tpuenv.kubernetes.errors import Unreachable
from tpuenv.main import main
from tpuenv.status.as_json import document
from tpuenv.status.as_text import tables
from tpuenv.status.read_status import Status, read_status
from tpuenv.status.slices import slices_of
from tpuenv.status.watch import screen, watch

Capture = pytest.CaptureFixture[str]
Object = dict[str, Any]


def status_of(ground: Ground, *teams: str) -> Status:
    """Of these teams, or of all."""
    shown = teams or [team.name for team in ground.environment.teams]
    return read_status(quick(connect(ground.environment)), ground.environment, shown)


def lines_of(ground: Ground) -> list[str]:
    return [" ".join(line.split()) for line in tables(status_of(ground))]


def break_node(ground: Ground, pool: str, number: int, **change: Any) -> None:
    """Writes a node as its kubelet, or a person, would."""
    api = ground.api
    node = next(
        item
        for item in node_objects(api.cluster, all_nodes(api))
        if item["metadata"]["name"].endswith(f"-{pool}-{number}")
    )
    node["spec"].update(change)
    if not change:
        node["status"]["conditions"] = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]
    api.store(node)


def test_slices_queues_and_jobs_are_shown(ground: Ground) -> None:
    make(ground.api, {"make": [{"name": "one"}, {"name": "two"}, {"name": "train"}]})
    ground.patch("JobSet", "one", {"status": {"restarts": 2}})
    lines = lines_of(ground)
    assert lines[:2] == ["SLICES OF TYPE ALL USED FREE BROKEN", "tpu v6e-16 2 2 0 0"]
    assert lines[3:5] == [
        "QUEUE OF PENDING ADMITTED GROUP QUOTA USED BORROWED",
        "tpu-training 1 2 tpu 2 2 0",
    ]
    rows = {line.split()[0]: line for line in lines[6:] if line}
    assert rows["JOB"] == "JOB TEAM STATE GROUP SLICES HOSTS RESTARTS AGE"
    assert rows["one"].startswith("one tpu-training running tpu 1 4/4 2 ")
    assert rows["train"].startswith("train tpu-training waiting, 1 in its queue - 1 0/4 0 ")
    assert any("in use by jobs that this one may not stop" in line for line in lines)


def test_an_environment_without_jobs_says_so_and_ended_jobs_are_counted(ground: Ground) -> None:
    assert "No job waits or runs." in lines_of(ground)
    make(ground.api, {"make": [{"name": "train"}], "end": {"type": "Completed", "reason": "AllJobsCompleted"}})
    lines = lines_of(ground)
    assert lines[1] == "tpu v6e-16 2 0 2 0"
    assert lines[lines.index("No job waits or runs.") + 1] == "1 job ended: see `tpuenv jobs`"


def test_the_last_lines_are_links_to_the_dashboards_and_alerts(ground: Ground) -> None:
    console = "https://console.cloud.google.com/monitoring"
    *_, empty, alerts, queues, tpus = lines_of(ground)
    assert empty == ""
    for word, line in {"TPUs": tpus, "queues and jobs": queues}.items():
        (dashboard,) = (
            item.name.rpartition("/")[2]
            for item in ground.fake.cloud.find("google_monitoring_dashboard")
            if json.loads(item.attributes["dashboard_json"])["displayName"] == f"tpu: {word}"
        )
        assert line == f"{word}: {console}/dashboards/builder/{dashboard}?project=my-project"
    assert alerts == f"alerts: {console}/alerting?project=my-project"


def test_without_the_dashboards_there_are_no_links(ground: Ground) -> None:
    ground.api.remove(ground.api.get(ground.api.resource("v1", "ConfigMap"), "kueue-system", "tpuenv-links"))
    assert lines_of(ground)[-1] == "No job waits or runs."


def test_links_that_may_not_be_read_are_left_out(fleet: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    act_as("alice@example.com", monkeypatch)
    assert lines_of(fleet)[-1].startswith("TPUs: https://")
    binding = next(
        item for item in fleet.fake.cloud.find(KIND) if "|RoleBinding|kueue-system|tpuenv-member" in item.name
    )
    fleet.fake.cloud.delete(KIND, binding.name)
    assert not any("https://" in line for line in lines_of(fleet))


def test_links_that_cannot_be_read_at_once_are_left_out(ground: Ground) -> None:
    def unavailable(request: Request) -> Response | None:
        return Response(status=503) if "/configmaps/" in request.path else None

    ground.before.append(unavailable)
    assert lines_of(ground)[-1] == "No job waits or runs."
    assert len([request for request in ground.requests if "/configmaps/" in request]) == 1


def test_json_is_all_of_standard_output_after_an_answer_that_was_no_good(ground: Ground, capsys: Capture) -> None:
    once = [Response(status=503)]
    ground.before.append(lambda request: once.pop() if "/jobsets" in request.path and once else None)
    assert main(["status", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["version"] == 1
    assert "no good answer yet" in printed.err


def test_chips_of_stuck_jobs_and_of_slices_that_are_partly_there_are_counted(ground: Ground) -> None:
    make(ground.api, situations()["without-pods-and-without-a-word"])
    break_node(ground, "tpu-1", 2)
    status = status_of(ground)
    (slices,), (job,) = document(status)["slices"], document(status)["jobs"]
    assert (slices["stuck_chips"], slices["partial_chips"], slices["used"]) == (16, 16, 1)
    assert job["state"] == "stuck" and job["stuck_seconds"] >= 720
    lines = lines_of(ground)
    assert "16 chips held by jobs without pods (train): `tpuenv requeue`, or cancel, them" in lines
    assert any(line.startswith("train tpu-training stuck for 12m tpu 1 0/4") for line in lines)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, "3 of 4 nodes take pods; gke-tpu-cluster-tpu-1-2 is not ready"),
        ({"unschedulable": True}, "3 of 4 nodes take pods; gke-tpu-cluster-tpu-1-2 is cordoned"),
        (
            {"taints": [{"key": "cloud.google.com/impending-node-termination", "effect": "NoSchedule"}]},
            "gke-tpu-cluster-tpu-1-2 has the taint cloud.google.com/impending-node-termination",
        ),
    ],
)
def test_a_slice_with_a_node_that_takes_no_pods_is_broken(ground: Ground, change: Object, why: str) -> None:
    break_node(ground, "tpu-1", 2, **change)
    lines = lines_of(ground)
    assert lines[1] == "tpu v6e-16 2 0 1 1"
    assert lines[2].startswith("tpu-1: ")
    assert why in lines[2]


def test_a_broken_slice_with_a_job_counts_once_among_those_that_are_not_free(ground: Ground) -> None:
    make(ground.api, {"make": [{"name": "train"}]})
    ground.patch("Pod", ground.pods()[2]["metadata"]["name"], {"status": {"phase": "Pending"}})
    break_node(ground, "tpu-0", 2)
    (slices,) = status_of(ground).slices
    assert (slices.used, slices.free, slices.broken) == (1, 1, 1)
    assert slices.problems is not None
    assert slices.problems[0].why.endswith("; pods run on 3")


def test_slices_are_as_free_for_one_team_as_for_all(fleet: Ground) -> None:
    make(fleet.api, {"make": [{"name": "train", "team": "students", "group": "dev"}]})
    break_node(fleet, "dev-0", 0, unschedulable=True)
    of_all, of_one = status_of(fleet), status_of(fleet, "research")
    dev = next(slices for slices in of_one.slices if slices.group == "dev")
    assert (dev.used, dev.broken, dev.free) == (1, 1, 3)
    assert of_one.slices == of_all.slices
    assert [len(status.jobs) for status in (of_all, of_one)] == [1, 0]


def test_a_slice_without_nodes_is_broken_unless_it_is_created_when_it_is_needed(synthesis: Synthesis) -> None:
    groups = {group.name: group for group in synthesis.environment("three-teams-four-groups").groups}
    broken = {name: slices_of(group, 0, []).broken for name, group in groups.items()}
    assert broken == {"pretrain": 2, "dev": 0, "serve": 2, "burst": 0}
    assert slices_of(groups["dev"], 0, []).free == 4


def test_what_a_team_has_borrowed_is_shown_and_a_queue_that_is_on_hold_or_stopped(fleet: Ground) -> None:
    make(fleet.api, {"make": [{"name": "train", "team": "students", "group": "dev", "replicas": 3}]})
    resource = fleet.api.resource("kueue.x-k8s.io/v1beta2", "ClusterQueue")
    fleet.api.patch(resource, "", "serving", {"spec": {"stopPolicy": "Hold"}})
    queues = {queue.team: queue for queue in status_of(fleet).queues or ()}
    dev = next(quota for quota in queues["students"].quotas if quota.group == "dev")
    assert (dev.own, dev.used, dev.borrowed) == (1, 3, 2)
    assert queues["serving"].stopped == "on hold: no job starts until a deploy without HOLD_QUEUES=true"
    assert any("on hold: no job starts" in line for line in lines_of(fleet))
    fleet.api.patch(resource, "", "serving", {"spec": {"stopPolicy": "HoldAndDrain"}})
    assert any("is stopped" in line for line in lines_of(fleet))


def test_a_member_sees_all_but_nodes_and_other_teams_jobs(fleet: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    make(fleet.api, {"make": [{"name": "train", "team": "students", "group": "dev"}]})
    act_as("alice@example.com", monkeypatch)
    lines = lines_of(fleet)
    assert "dev v6e-16 4 1 3 -" in lines
    assert "note: not allowed to read nodes: slices' health not shown" in lines
    assert any(line.startswith("note: the jobs of team students may not be read") for line in lines)
    assert any(line.startswith("research 0 0 ") for line in lines)


def test_somebody_who_may_not_read_queues_is_told_what_is_missing(
    fleet: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    binding = next(item for item in fleet.fake.cloud.find(KIND) if "|ClusterRoleBinding||tpuenv-member" in item.name)
    fleet.fake.cloud.delete(KIND, binding.name)
    act_as("alice@example.com", monkeypatch)
    lines = lines_of(fleet)
    assert "dev v6e-16 4 - - -" in lines
    assert not any(line.startswith("QUEUE OF") for line in lines)
    note = "note: not allowed to read ClusterQueues: quotas and what other teams use are not shown"
    assert note in lines


def test_the_json_has_the_fields_that_the_page_describes(ground: Ground, synthesis: Synthesis) -> None:
    make(ground.api, {"make": [{"name": "one", "replicas": 2}, {"name": "train"}]})
    break_node(ground, "tpu-1", 2)
    printed = document(status_of(ground))
    page = (Path(__file__).parents[3] / "docs" / "status.md").read_text(encoding="utf-8")
    described = json.loads(page.partition("```json\n")[2].partition("```")[0])
    assert keys(printed) == keys(described)
    assert printed["version"] == described["version"]
    assert printed["jobs"][1]["position"] == 1
    assert json.loads(json.dumps(printed)) == printed


def keys(value: Any) -> Any:
    """The keys of a document, of the first item of each list."""
    if isinstance(value, dict):
        return {key: keys(item) for key, item in value.items()}
    return [keys(value[0])] if isinstance(value, list) and value else None


@pytest.mark.usefixtures("at_once")
def test_the_command_reads_and_changes_nothing(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("TPU_TYPE", "v6e-16")
    assert main(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["slices"][0]["free"] == 2
    assert main(["status", "--team", "tpu-trainin"]) == 2
    assert "did you mean 'tpu-training'?" in capsys.readouterr().err
    assert all(request.startswith("GET ") for request in ground.requests)


class Terminal(io.StringIO):
    """A terminal whose size is not known."""

    def isatty(self) -> bool:
        return True


def shown_by(out: io.StringIO, texts: Sequence[Sequence[str] | Exception], *, in_place: bool = True) -> str:
    """What watching writes until Ctrl-C."""
    remaining = list(texts)

    def lines() -> Sequence[str]:
        if not remaining:
            raise KeyboardInterrupt
        text = remaining.pop(0)
        if isinstance(text, Exception):
            raise text
        return text

    with pytest.raises(KeyboardInterrupt):
        watch(lines, out=out, seconds=0, patience=100, in_place=in_place)
    return out.getvalue()


def test_a_terminal_is_drawn_over_and_cleared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    shown = shown_by(Terminal(), [["one", "two"], ["three"]])
    assert shown == "\033[2J\033[Hone\033[K\ntwo\033[K\n\033[J\033[Hthree\033[K\n\033[J"


def test_a_file_gets_each_state_after_the_other_with_its_time() -> None:
    first, _, second = shown_by(io.StringIO(), [["one"], ["two"]]).partition("\n\n")
    assert "\033" not in first + second
    assert first.splitlines()[1:] == ["one"]
    assert datetime.strptime(first.splitlines()[0], "%Y-%m-%d %H:%M:%S UTC").year >= datetime.now(timezone.utc).year
    assert second.splitlines()[1:] == ["two"]


def test_json_is_a_line_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert shown_by(Terminal(), [["{}"], ["{}"]], in_place=False) == "{}\n{}\n"


def test_what_was_read_last_stays_while_the_cluster_does_not_answer() -> None:
    shown = shown_by(io.StringIO(), [["one"], Unreachable("no answer"), ["two"]])
    assert "one" in shown
    assert "two" in shown
    with pytest.raises(Unreachable):
        watch(lambda: (_ for _ in ()).throw(Unreachable("no answer")), out=io.StringIO(), seconds=0, patience=0)


def test_what_does_not_fit_on_the_terminal_is_left_out() -> None:
    drawn = screen([f"line {number} {'x' * 200}" for number in range(50)], 40, 10)
    rows = drawn.replace("\033[H", "").replace("\033[J", "").splitlines()
    assert len(rows) == 9
    assert max(len(row.removesuffix("\033[K")) for row in rows) == 40
    assert rows[-1].startswith("... and 42 lines more")
