"""Situations of jobs, from tests/situations, made in the fake cluster.

A situation is a mapping:
- `make`: JobSets that are created one after the other: `name`, `chips`, `hosts`, `labels`, `replicas`, `team`, `group`,
  and `pod`, which is merged into the spec of its pods. The last is the one that is asked about, `train`.
- `patch`: changes of cluster-wide objects before that. `end`: the last condition of the JobSet.
- What the fake controllers do not do is then written as the real ones write it: `write` merges into objects (the
  status of a Workload it replaces), `pods` into the pods by slice and host ("0/2", "*" for all; null: there are none),
  `older_pods` are copies of these, `conditions` are those of its Workload, each so many minutes old, `remove` and
  `remove_pools` delete, `events` and `log` add. "about: pod 0/2" is that pod.
- `says` is the first line of `tpuenv why train` without "JobSet TEAM/train, ", `shows` are parts of the others.
- `environment: fleet` is the one with three teams; without it there is one team with two slices.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import yaml

from rehearsal.kubernetes import pods as fake_pods
from rehearsal.kubernetes.api import Api, merge
from rehearsal.kubernetes.nodes import POOL
from rehearsal.kubernetes.objects import KIND
from rehearsal.kubernetes.resources import ALL
from tests.rehearsal.job_sets import job_set
from vocabulary.keys import COMPLETION_INDEX_LABEL, JOB_INDEX_LABEL, POOL_GROUP_LABEL

FOLDER = Path(__file__).parents[2] / "situations"

Situation = dict[str, Any]
Object = dict[str, Any]


def situations() -> dict[str, Situation]:
    """By name, of all files."""
    found: dict[str, Situation] = {}
    for path in sorted(FOLDER.glob("*.yaml")):
        for name, situation in yaml.safe_load(path.read_text(encoding="utf-8")).items():
            assert name not in found, f"{path}: {name} is there twice"
            found[name] = situation
    return found


def make(api: Api, situation: Situation) -> None:
    """Brings the fake cluster into the situation."""
    for change in situation.get("patch") or []:
        for name, merged in change.items():
            kind, _, name = name.partition("/")
            api.patch(next(item for item in ALL if item.kind == kind), "", name, merged)
    for made in situation["make"]:
        api.create(_job_set(**made))
    team = next((made["team"] for made in reversed(situation["make"]) if "team" in made), "tpu-training")
    if "end" in situation:
        conditions = [{"status": "True", **situation["end"]}]
        resource = api.resource("jobset.x-k8s.io/v1alpha2", "JobSet")
        api.patch(resource, team, "train", {"status": {"conditions": conditions}})
    for pool in situation.get("remove_pools") or []:
        api.cloud.delete(POOL, f"{api.cluster}/nodePools/{pool}")
    _write(api, situation, team)


def _write(api: Api, situation: Situation, team: str) -> None:
    """What controllers would have written; nothing of it starts the fake ones."""
    pods = [pod for pod in fake_pods.pods_of_jobs(api, team) if pod["metadata"]["name"].startswith("train-")]
    by_place = {_place(pod): pod for pod in pods}
    for place, change in (situation.get("pods") or {}).items():
        for pod in pods if place == "*" else [by_place[place]]:
            # The fake makes a pod again that is removed: without labels it is not the job's.
            api.store(
                merge(
                    pod,
                    {"metadata": {"labels": dict.fromkeys(pod["metadata"]["labels"])}} if change is None else change,
                )
            )
    for place, change in (situation.get("older_pods") or {}).items():
        name = f"{by_place[place]['metadata']['name']}-older"
        older = {"metadata": {"name": name, "creationTimestamp": "2025-01-01T00:00:00Z"}}
        api.store(merge(merge(by_place[place], change), older))
    for name, change in (situation.get("write") or {}).items():
        stored = _stored(api, name, team)
        if name.startswith("Workload/") and "status" in change:
            del stored["status"]  # with its admission
        api.store(merge(stored, change))
    if conditions := situation.get("conditions"):
        workload = _stored(api, "Workload/jobset-train", team)
        told = [{**item, "lastTransitionTime": _time(item["minutes"])} for item in conditions]
        others = [
            item for item in workload["status"]["conditions"] if item["type"] not in {one["type"] for one in told}
        ]
        workload["status"]["conditions"] = [*others, *told]
        api.store(workload)
    for name in situation.get("remove") or []:
        api.remove(_stored(api, name, team))
    for number, event in enumerate(situation.get("events") or []):
        about = event["about"]
        kind, _, name = about.partition("/")
        if about.startswith("pod "):
            kind, name = "Pod", by_place[about.removeprefix("pod ")]["metadata"]["name"]
        api.store(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": f"train.{number:016x}", "namespace": team},
                "involvedObject": {"kind": kind, "name": name, "namespace": team},
                "type": event.get("type", "Warning"),
                "reason": event["reason"],
                "message": event["message"],
                "lastTimestamp": event.get("at", "2026-01-01T00:00:30Z"),
            }
        )
    for place, lines in (situation.get("log") or {}).items():
        fake_pods.write_log(api, team, by_place[place]["metadata"]["name"], lines)


def _job_set(
    name: str,
    *,
    team: str = "tpu-training",
    group: str = "",
    replicas: int = 1,
    labels: dict[str, str] | None = None,
    pod: Object | None = None,
    **sizes: int,
) -> Object:
    manifest = job_set(name, **sizes, **(labels or {}))  # type: ignore[arg-type]
    manifest["metadata"]["namespace"] = team
    replicated = manifest["spec"]["replicatedJobs"][0]
    replicated["replicas"] = replicas
    template = replicated["template"]["spec"]["template"]
    selected = {"nodeSelector": {POOL_GROUP_LABEL: group}} if group else {}
    template["spec"] = merge(merge(template["spec"], selected), pod or {})
    return manifest


def _stored(api: Api, name: str, team: str) -> Object:
    kind, _, name = name.partition("/")
    resource = next(item for item in ALL if item.kind == kind)
    stored = api.cloud.get(KIND, api.key(resource, team if resource.namespaced else "", name))
    assert stored is not None, f"there is no {kind} {name}"
    return stored


def _time(minutes_ago: int) -> str:
    return f"{datetime.now(timezone.utc) - timedelta(minutes=minutes_ago):%Y-%m-%dT%H:%M:%SZ}"


def _place(pod: Object) -> str:
    labels = pod["metadata"]["labels"]
    return f"{labels[JOB_INDEX_LABEL]}/{labels[COMPLETION_INDEX_LABEL]}"
