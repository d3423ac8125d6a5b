"""hello-tpu as its pods would start it, on CPU devices: what it measures is right, and what is wrong is seen."""

from __future__ import annotations

import dataclasses
import signal
from pathlib import Path

import pytest

from environment import Environment
from manifests.recipes import recipe_named
from manifests.render import Run
from tests.fleets import one_group, with_fleet
from tests.google_of_a_pod import Google
from tests.workloads.hosts import Ended, Pods, pods_of, ran, started

pytestmark = pytest.mark.workloads("hello-tpu")

RECIPE = recipe_named("hello-tpu")

# Of one host, of four, and of two, with four chips each.
ONE_HOST = with_fleet(one_group("type: v6e-4, slices: 1"))
FOUR_HOSTS = with_fleet(one_group("type: v6e-16, slices: 1"))
TWO_HOSTS = with_fleet(one_group("type: v5p-16, slices: 2, zone: us-east5-a"))

SECONDS = 200  # within which a run ends also on a busy machine


def pods(environment: Environment, *, slices: int = 1, **settings: str) -> Pods:
    """Of a run with small matrices."""
    settings = {"size": "128", "steps": "2", **settings}
    (team,) = environment.teams
    (group,) = environment.groups
    return pods_of(
        Run(recipe=RECIPE, environment=environment, team=team, group=group, slices=slices, settings=settings)
    )


def verdict(hosts: list[Ended]) -> str:
    """The line that host 0 ends with; the others print none."""
    lines = [(host, line) for host in hosts for line in host.stdout.splitlines() if line.startswith("verdict: ")]
    ((host, line),) = lines
    assert (host.slice, host.host) == (0, 0)
    return line


def products(host: Ended) -> dict[tuple[str, str], tuple[int, int]]:
    """Data and model axis of each product that was right, by what it was sharded by and within what."""
    (line,) = host.lines
    assert all(each["error"] == 0 and each["ms"] > 0 for each in line["products"])
    return {(each["sharded_by"], each["within"]): (each["data"], each["model"]) for each in line["products"]}


def test_one_slice_of_one_host(tmp_path: Path) -> None:
    """Which has nobody to wait for."""
    (host,) = ran(pods(ONE_HOST, ici_model="2"), tmp_path, seconds=SECONDS)
    assert host.code == 0, host
    assert verdict([host]) == "verdict: ok (hosts 1, chips 4, slices 1)"
    assert products(host)["data and model", "slice"] == (2, 2)


def test_one_slice_of_four_hosts(tmp_path: Path) -> None:
    hosts = ran(pods(FOUR_HOSTS, ici_model="4"), tmp_path, seconds=SECONDS)
    assert [host.code for host in hosts] == [0, 0, 0, 0], hosts
    assert verdict(hosts) == "verdict: ok (hosts 4, chips 16, slices 1)"
    for number, host in enumerate(hosts):
        (line,) = host.lines
        assert (line["run"], line["host"], line["slice"], line["devices_here"]) == ("hello-tpu", number, 0, 4)
        assert line["all_reduce"] == {"sum": 136, "expected": 136}
        assert products(host) == {
            ("data", "slice"): (16, 1),
            ("model", "slice"): (1, 16),
            ("data and model", "slice"): (4, 4),
        }
        assert line["multiplication"]["tflops_per_chip"] > 0
        # A CPU has no data sheet.
        assert line["multiplication"]["share_of_data_sheet"] is None
        ((within, speed, share),) = [
            (each["within"], each["gbytes_per_second_per_chip"], each["share_of_data_sheet"])
            for each in line["all_gather"]
        ]
        assert (within, speed > 0, share) == ("slice", True, None)


@pytest.mark.parametrize(
    ("mesh", "within", "across"),
    [
        pytest.param({"ici_model": "2"}, (4, 2), (8, 2), id="data across"),
        pytest.param({"ici_model": "4", "dcn_model": "2"}, (2, 4), (2, 8), marks=pytest.mark.long, id="model across"),
    ],
)
def test_two_slices_of_two_hosts(
    tmp_path: Path, mesh: dict[str, str], within: tuple[int, int], across: tuple[int, int]
) -> None:
    hosts = ran(pods(TWO_HOSTS, slices=2, **mesh), tmp_path, seconds=SECONDS)
    assert [host.code for host in hosts] == [0, 0, 0, 0], hosts
    assert verdict(hosts) == "verdict: ok (hosts 4, chips 16, slices 2)"
    for number, host in enumerate(hosts):
        (line,) = host.lines
        assert (line["host"], line["slice"], line["slices"]) == (number, number // 2, 2)
        assert products(host) == {
            ("data", "slice"): (8, 1),
            ("data", "slices"): (16, 1),
            ("model", "slice"): (1, 8),
            ("model", "slices"): (1, 16),
            ("data and model", "slice"): within,
            ("data and model", "slices"): across,
        }
        assert [(each["within"], each["error"]) for each in line["all_gather"]] == [("slice", 0), ("slices", 0)]


def test_a_wrong_expectation_gives_a_red_verdict(tmp_path: Path) -> None:
    expecting = pods(TWO_HOSTS).with_environment(EXPECTED_CHIPS="16")
    hosts = ran(expecting, tmp_path, seconds=SECONDS, until_each_ends=True)
    assert [host.code for host in hosts] == [1, 1]
    assert verdict(hosts) == (
        "verdict: failed on hosts 0, 1 (hosts 2, chips 8, slices 1): chips of slice 0: 8, expected 16"
    )
    assert [host.lines[0]["problems"] for host in hosts] == [["chips of slice 0: 8, expected 16"]] * 2


def test_each_host_says_which_buckets_it_may_use(tmp_path: Path) -> None:
    """And an open one of another team makes the verdict red, after all measurements."""
    google = Google(tmp_path)
    google.grant("other", of="list")
    asking = pods(ONE_HOST, bucket="own", other_buckets="other").with_environment(**google.variables)
    (host,) = ran(asking, tmp_path, seconds=SECONDS, until_each_ends=True)
    google.close()
    assert host.code == 1
    (line,) = host.lines
    assert line["own_bucket"] == {"write": "ok", "read": "ok", "delete": "ok"}
    assert line["other_buckets"] == {"other": "its objects can be listed"}
    assert line["problems"] == ["bucket other: its objects can be listed, and must be refused"]
    assert line["all_gather"][0]["error"] == 0


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("size=many", "size=many: is not a whole number from 1; write one such as size=16"),
        ("size=100000", "size=100000: sums would not be exact; write 65536 or less"),
        ("steps=3", "steps=3: steps is there twice; write it once"),
        ("sizes=8", "'sizes=8': write key=value, with one of the keys size, steps, ici_data, ici_model, dcn_data, "),
        ("ici_model=3", "ici_data=4 ici_model=3: their product is 12, not the 4 devices of a slice; write numbers "),
    ],
    ids=["number", "size", "twice", "key", "mesh"],
)
def test_words_that_cannot_be_used_end_it_with_what_to_write(tmp_path: Path, word: str, message: str) -> None:
    of_one_host = pods(ONE_HOST)
    key = word.partition("=")[0]
    words = [other for other in of_one_host.command if key == "steps" or not other.startswith(f"{key}=")]
    (host,) = ran(dataclasses.replace(of_one_host, command=(*words, word)), tmp_path, seconds=SECONDS)
    assert (host.code, host.stdout) == (2, "")
    assert host.stderr.startswith(f"hello-tpu: {message}")


@pytest.mark.long
def test_a_host_that_is_killed_ends_the_others(tmp_path: Path) -> None:
    """By themselves, which is what makes the JobSet start the run again."""
    with started(pods(TWO_HOSTS, slices=2, steps="100000000"), tmp_path) as hosts:
        hosts.wait_for("is connected to", seconds=SECONDS)
        hosts.signal(signal.SIGKILL, slice_=1, host=1)
        codes = [host.code for host in hosts.wait(seconds=SECONDS, until_each_ends=True)]
    assert codes[-1] == -signal.SIGKILL
    assert all(code != 0 for code in codes)
