"""Organisation policies that would refuse a part of the environment.

https://cloud.google.com/resource-manager/docs/organization-policy/org-policy-constraints describes each constraint.
Policies that do no harm are not asked for: compute.vmExternalIpAccess, since no machine has a public address;
storage.uniformBucketLevelAccess and storage.publicAccessPrevention, since the buckets are so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from environment import Environment
from environment.services import EGRESS_SERVICES, SERVICES, TPU_VM_SERVICES
from tpuenv.preflight.question import Answers, Check, Question
from tpuenv.preflight.row import Row, compared, unknown
from vocabulary.printable import listed

# Booleans: what they would refuse.
_SHIELDED = "compute.requireShieldedVm"
_ENFORCED = {
    _SHIELDED: "nodes, which have no secure boot",
    "iam.disableServiceAccountCreation": "the service accounts of nodes and builds",
}

# Lists whose values are services: what is denied there cannot be created.
_CMEK = ("aiplatform", "artifactregistry", "compute", "container", "storage")
_CONFIDENTIAL = ("compute", "container")


def _locations(environment: Environment) -> list[str]:
    settings = environment.settings
    return list(dict.fromkeys((settings.region, settings.tensorboard_region)))


def _all_services(environment: Environment) -> list[str]:
    google = environment.settings.egress == "google"
    return [*SERVICES, *(EGRESS_SERVICES if google else ()), *(TPU_VM_SERVICES if environment.tpu_vms else ())]


def _subnet(environment: Environment) -> list[str]:
    settings, names = environment.settings, environment.names
    return [f"projects/{settings.project_id}/regions/{settings.region}/subnetworks/{names.subnet}"]


def _services(names: Sequence[str]) -> Callable[[Environment], list[str]]:
    return lambda _: [f"{name}.googleapis.com" for name in names]


# Lists: the values that must be allowed.
_LISTS: dict[str, Callable[[Environment], list[str]]] = {
    "gcp.resourceLocations": _locations,
    "gcp.restrictServiceUsage": _all_services,
    "gcp.restrictNonCmekServices": _services(_CMEK),
    "compute.restrictNonConfidentialComputing": _services(_CONFIDENTIAL),
    "compute.restrictCloudNATUsage": _subnet,
}

_MEMBERS = "iam.allowedPolicyMemberDomains"


def _question(environment: Environment, constraint: str) -> Question:
    """https://cloud.google.com/resource-manager/docs/reference/orgpolicy/rest/v2/projects.policies/getEffectivePolicy"""
    return Question(
        host="orgpolicy.googleapis.com",
        path=f"/v2/projects/{environment.settings.project_id}/policies/{constraint}:getEffectivePolicy",
        permission="orgpolicy.policies.get",
        role="roles/orgpolicy.policyViewer",
    )


def _constraints(environment: Environment) -> list[str]:
    members = any(team.members for team in environment.teams)
    # The nodes of Autopilot have secure boot. https://cloud.google.com/kubernetes-engine/docs/how-to/shielded-gke-nodes
    booleans = [name for name in _ENFORCED if name != _SHIELDED or not environment.settings.autopilot]
    return [*booleans, *_LISTS, *([_MEMBERS] if members else [])]


def _rows(environment: Environment, answers: Answers) -> Iterator[Row]:
    for constraint in _constraints(environment):
        answer = answers[_question(environment, constraint)]
        need = "not enforced" if constraint in _ENFORCED else "allows what is created"
        if not answer.exists:
            yield compared(constraint, need, "no such constraint", ok=True, fix="")
        elif answer.why:
            yield answer.unknown(constraint, need)
        else:
            yield _row(environment, constraint, need, (answer.body.get("spec") or {}).get("rules") or [])


def _row(environment: Environment, constraint: str, need: str, rules: Sequence[Mapping[str, Any]]) -> Row:
    show = f"gcloud org-policies describe {constraint} --effective --project={environment.settings.project_id}"
    fix = f"{show}    # its administrator lifts it for this project"
    if constraint in _ENFORCED:
        enforced = any(rule.get("enforce") is True for rule in rules)
        have = f"enforced: refuses {_ENFORCED[constraint]}" if enforced else "not enforced"
        return compared(constraint, need, have, ok=not enforced, fix=fix)
    allowed, denied = ([str(value) for rule in rules for value in _values(rule, key)] for key in ("allowed", "denied"))
    if any(rule.get("denyAll") is True for rule in rules):
        return compared(constraint, need, "denies all", ok=False, fix=fix)
    if constraint == _MEMBERS:
        # Its values are ids of organisations, which say nothing of the members' addresses.
        return unknown(constraint, need, f"allows only {listed(allowed)}", show) if allowed else _open(constraint, need)
    refused, doubtful = [], []
    for value in _LISTS[constraint](environment):
        if _contains(denied, value) or (allowed and _contains(allowed, value) is False):
            refused.append(value)
        elif (allowed and not _contains(allowed, value)) or _contains(denied, value) is None:
            doubtful.append(value)
    if refused:
        return compared(constraint, need, f"refuses {listed(refused)}", ok=False, fix=fix)
    if doubtful:
        groups = listed([value for value in (*allowed, *denied) if ":" in value])
        return unknown(constraint, need, f"whether {groups} has {listed(doubtful)} is not known here", show)
    return _open(constraint, need)


def _open(constraint: str, need: str) -> Row:
    return compared(constraint, need, "allows it", ok=True, fix="")


def _values(rule: Mapping[str, Any], kind: str) -> Sequence[object]:
    values: Sequence[object] = (rule.get("values") or {}).get(f"{kind}Values") or []
    return values


def _contains(values: Sequence[str], value: str) -> bool | None:
    """Whether a policy's list has the value; None where it has groups, of which Google alone knows the members.

    The groups of locations that are known by their names: in:us-east5-locations, in:us-locations.
    """
    groups = {f"in:{value}-locations", f"in:{value.partition('-')[0]}-locations"}
    within = "/".join(value.split("/")[:2])  # the project of a subnet
    if {value, f"is:{value}", f"under:{within}", *groups} & {*values}:
        return True
    # "under:" is also a folder or an organisation, and "in:" any other group.
    return None if any(item.startswith(("in:", "under:")) for item in values) else False


def _questions(environment: Environment) -> Iterator[Question]:
    yield from (_question(environment, constraint) for constraint in _constraints(environment))


CHECK = Check("organisation policies", _questions, _rows)
