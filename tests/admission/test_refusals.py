"""What the API server and the webhooks refuse when a workload is created."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from admission import Verdict, explain
from tests.admission_cases import Object, codes_of, fleet, manifest_of


def _name(name: str) -> Callable[[Object], object]:
    return lambda manifest: manifest["metadata"].update(name=name)


@pytest.mark.parametrize(
    ("case", "change", "code"),
    [
        ("job-cpu", lambda m: m["metadata"].pop("name"), "no-name"),
        ("job-cpu", _name("My_Job"), "bad-name"),
        ("jobset-one-slice", _name("1st"), "bad-name"),
        ("job-cpu", lambda m: m["spec"]["template"]["spec"].update(containers=[]), "no-containers"),
        ("jobset-one-slice", lambda m: m["spec"]["replicatedJobs"].extend(m["spec"]["replicatedJobs"]), "same-name"),
        ("rayjob-one-slice", lambda m: m["spec"].pop("rayClusterSpec"), "no-pods"),
        ("job-one-slice", lambda m: m["spec"].pop("completions"), "no-completions"),
        (
            "raycluster-two-slices",
            lambda m: m["spec"].update(
                workerGroupSpecs=[{**m["spec"]["workerGroupSpecs"][0], "groupName": f"g{i}"} for i in range(18)]
            ),
            "too-many-worker-groups",
        ),
    ],
)
def test_what_the_api_server_would_refuse_is_refused(case: str, change: Callable[[Object], object], code: str) -> None:
    manifest = manifest_of(case)
    change(manifest)
    explanation = explain(fleet(), manifest)
    assert explanation.verdict == Verdict.REFUSED
    assert code in codes_of(explanation)


def test_a_generated_name_counts_with_its_suffix() -> None:
    manifest = manifest_of("jobset-one-slice")
    del manifest["metadata"]["name"]
    manifest["metadata"]["generateName"] = "a" * (63 - len("xxxxx-workers-0-3-abcde"))
    assert explain(fleet(), manifest).verdict == Verdict.ADMITTED
    manifest["metadata"]["generateName"] += "a"
    assert codes_of(explain(fleet(), manifest)) == ["name-too-long"]


def test_what_a_terminal_would_interpret_is_escaped() -> None:
    manifest = manifest_of("job-cpu")
    manifest["metadata"]["name"] = "a\x1b[2J\nb"
    assert explain(fleet(), manifest).lines()[0] == r"Job tpu-training/a\x1b[2J\nb: would be refused"
