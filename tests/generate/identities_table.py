"""The table of the builds' identities in docs/identities.md, from the reviewed snapshots of the stacks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent
REVIEWED = HERE / "stacks" / "__snapshots__" / "test_snapshots"
CASE = "pipeline"

_LOG = "Cloud Build writes a build's log as its account; a line cannot be changed or deleted"
_IMAGE = "the image that the build runs in"

# account -> (role, or its purpose) -> why it is granted. A role that is granted and missing here is an error.
WHY = {
    "build": {
        "build-bucket": "fetches its source; Cloud Build asks for the bucket",
        "build-bucket, only logs": "Cloud Build writes a build's log as its account, and replaces it as it grows",
        "registry": "pushes images of recipes",
        "builder-registry": "pushes the image that the pipeline's builds run in",
    },
    "test": {
        "logging.logWriter": _LOG,
        "registry": _IMAGE,
    },
    "plan": {
        "plan": "a plan compares the state with what is there",
        "state": "a plan reads the state; it takes no lock",
        "records": "adds the plan for the deploy to compare with, and cannot replace one",
        "logging.logWriter": _LOG,
        "registry": _IMAGE,
        "cluster": "a plan of `platform` and `queues` reads their objects, and Helm its releases; the "
        "configurations of Kueue and JobSet are in the same namespaces, nothing of the teams is",
    },
    "deploy": {
        "deploy": "what the resource types of the stacks need: `vocabulary/resource_types`. It deletes custom roles, "
        "and never writes them, because that could widen its own",
        "deploy_buckets": "a team's bucket is destroyed with its objects, and teams get roles on their bucket; that of "
        "image builds is like them",
        "grant_resourcemanager": "nodes, members and TensorBoard writers get roles in the project",
        "grant_artifactregistry": "nodes pull images, image builds push them",
        "container.admin": "charts bring cluster roles and webhooks: creating those takes administering the cluster",
        "start_builds": "asks for another approval, by starting its own trigger again; it approves nothing. Google has "
        "one permission for starting triggers and changing them",
        "nodes": "node pools run as the nodes' account",
        "itself": "starting a trigger takes acting as its account",
        "state": "writes the state, under its lock",
        "records": "compares a plan with its record, and records what was not reviewed",
        "logging.logWriter": _LOG,
        "registry": _IMAGE,
    },
    "scheduler": {
        "start_builds": "starts the drift check every night",
        "plan": "starting a trigger takes acting as its account, so it starts no deploy",
    },
}

Stack = Mapping[str, Any]


def identities_table() -> str:
    """A row for each role: who has it, what it permits, where, and why. Raises ValueError if WHY does not fit."""
    foundation, pipeline, platform = _stack("foundation"), _stack("pipeline"), _stack("platform")
    rows = ["| identity | runs | may | on | why |", "|---|---|---|---|---|"]
    for account, reasons in WHY.items():
        stack = foundation if account == "build" else pipeline
        granted = dict(_granted(stack, account))
        if account == "plan":
            granted["cluster"] = _in_cluster(platform)
        if granted.keys() != reasons.keys():
            raise ValueError(f"{__file__}: {account} has {sorted(granted)}, explained {sorted(reasons)}")
        who, what = f"`{_id(stack, account)}`", _runs(pipeline, account)
        for purpose, why in reasons.items():
            may, on = granted[purpose]
            rows.append(f"| {who} | {what} | {may} | {on} | {why} |")
            who = what = ""
    return "\n".join(rows)


def _stack(name: str) -> Stack:
    path = REVIEWED / f"test_a_stack_is_what_was_reviewed[{CASE}-{name}].json"
    return dict(json.loads(path.read_text(encoding="utf-8"))["resource"])


def _id(stack: Stack, account: str) -> str:
    (account_id,) = (
        resource["account_id"]
        for id_, resource in stack["google_service_account"].items()
        if _is(account, f"google_service_account.{id_}.")
    )
    return str(account_id)


def _is(account: str, reference: str) -> bool:
    """Whether a reference is to that account, which the stack pipeline has in the construct `identities`."""
    return bool(
        re.search(rf"google_service_account\.(identities_{account}-account_\w+|{account}-account)\.", reference)
    )


def _runs(pipeline: Stack, account: str) -> str:
    triggers = [
        f"`{trigger.get('filename') or trigger['git_file_source']['path']}`"
        + (" after an approval" if "approval_config" in trigger else "")
        for trigger in pipeline["google_cloudbuild_trigger"].values()
        if _is(account, trigger["service_account"])
    ]
    return (
        "<br>".join(triggers)
        or {
            "build": "`cloudbuild/images.yaml`<br>`cloudbuild/builder.yaml`",
            "scheduler": "the nightly Cloud Scheduler job",
        }[account]
    )


def _granted(stack: Stack, account: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """For each purpose what is permitted, and where."""
    for type_ in (
        "google_project_iam_member",
        "google_storage_bucket_iam_member",
        "google_service_account_iam_member",
        "google_artifact_registry_repository_iam_member",
    ):
        of_purpose: dict[str, list[tuple[str, str]]] = {}
        for id_, member in stack.get(type_, {}).items():
            if _is(account, member["member"]):
                of_purpose.setdefault(_purpose(type_, id_, member), []).append(_grant(stack, member))
        for purpose, grants in of_purpose.items():
            yield purpose, ("<br>".join(may for may, _ in grants), grants[0][1])


def _purpose(type_: str, id_: str, member: Stack) -> str:
    if type_ == "google_service_account_iam_member":
        return re.sub(r".*-acts-as-(\w+?)_[0-9A-F]{8}", r"\1", id_)
    if type_ == "google_storage_bucket_iam_member":
        if id_.startswith("build-bucket"):
            return "build-bucket" + (f", {member['condition']['title']}" if "condition" in member else "")
        return id_.removeprefix("identities_").partition("-")[0]
    if type_ == "google_artifact_registry_repository_iam_member":
        return id_.removesuffix("-writer") if id_.endswith("-writer") else "registry"
    # Of a custom role the id in its stack says what it is for.
    return re.sub(r".*\.identities_role-(\w+?)_[0-9A-F]{8}\.name\}", r"\1", str(member["role"])).removeprefix("roles/")


def _grant(stack: Stack, member: Stack) -> tuple[str, str]:
    role = str(member["role"])
    if role.startswith("roles/"):
        may = f"`{role}`"
    else:
        may = _permissions(stack["google_project_iam_custom_role"][role.split(".")[1]]["permissions"])
    return may, _where(stack, member)


def _permissions(permissions: list[str]) -> str:
    """By what they are for: `compute.networks`: create, delete."""
    by_resource: dict[str, list[str]] = {}
    for permission in permissions:
        resource, _, verb = permission.rpartition(".")
        by_resource.setdefault(resource, []).append(verb)
    return "<br>".join(f"`{resource}`: {', '.join(verbs)}" for resource, verbs in by_resource.items())


def _where(stack: Stack, member: Stack) -> str:
    if "service_account_id" in member:
        given = str(member["service_account_id"])
        target = re.fullmatch(r"\$\{google_service_account\.identities_(\w+?)-account_\w+\.name\}", given)
        name = _id(stack, target.group(1)) if target else given.rpartition("/")[2].partition("@")[0]
        return f"account `{name}`"
    if "bucket" in member:
        bucket = re.fullmatch(r"\$\{google_storage_bucket\.([\w-]+)\.name\}", member["bucket"])
        name = stack["google_storage_bucket"][bucket.group(1)]["name"] if bucket else member["bucket"]
        return f"bucket `{name}`" + (f", {member['condition']['title']}" if "condition" in member else "")
    if "repository" in member:
        registry = re.fullmatch(r"\$\{google_artifact_registry_repository\.([\w-]+)\.name\}", member["repository"])
        made = stack["google_artifact_registry_repository"] if registry else {}
        return f"registry `{made[registry[1]]['repository_id'] if registry else member['repository']}`"
    if "condition" not in member:
        return "the project"
    roles = re.findall(r"'((?:roles|projects)/[^']+)'", member["condition"]["expression"])
    return f"{member['condition']['title']}:<br>" + "<br>".join(f"`{role.rpartition('roles/')[2]}`" for role in roles)


def _in_cluster(platform: Stack) -> tuple[str, str]:
    """What the plan identity's own roles in the cluster let it see."""
    roles = {**platform["kubernetes_cluster_role_v1"], **platform["kubernetes_role_v1"]}
    seen, where = [], []
    for id_, role in roles.items():
        if not id_.startswith("plan-access_"):
            continue
        if namespace := role["metadata"].get("namespace"):
            where.append(f"`{namespace}`")
            continue
        by_verb: dict[str, list[str]] = {}
        for rule in role["rule"]:
            by_verb.setdefault(", ".join(rule["verbs"]), []).extend(rule["resources"])
        seen += [f"{verbs}: {', '.join(kinds)}" for verbs, kinds in by_verb.items()]
    return "<br>".join([*seen, f"get, list: configmaps in {' and '.join(where)}"]), "the cluster"
