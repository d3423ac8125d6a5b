"""What the API server refuses in the namespaces of teams: vocabulary/team_rules as ValidatingAdmissionPolicies.

Policies need no webhook and no pod, and they hold before the first pod of a team exists. Pod Security's level
`baseline` is enforced besides (stacks/teams.py): it alone would leave an admitted JobSet without pods.
https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from cdktf import ITerraformDependable
from constructs import Construct

from stacks.owned import owned_policy
from vocabulary.keys import ADMITTED_POD_LABEL, HOST_ACCESS_LABEL, TEAM_LABEL, TPU
from vocabulary.team_rules import (
    FINALIZER,
    MOST_RAY_HOSTS,
    MOST_RAY_REPLICAS,
    NOT_ADMITTED,
    ORPHANS,
    PUBLIC_LOAD_BALANCER,
    RAY_CHANGED,
    RAY_SIZE,
    STOPPED,
    Of,
    TeamRule,
    Value,
    rules_of,
    steps_of,
)

_TEAMS = {"namespaceSelector": {"matchExpressions": [{"key": TEAM_LABEL, "operator": "Exists"}]}}

# Controllers write into the jobs of every namespace, and a member of one team only into its own: that right tells them
# apart, whatever GKE calls its own controllers.
_NOT_A_CONTROLLER = "!authorizer.group('batch').resource('jobs').namespace('kube-system').check('patch').allowed()"

_WORKLOADS = (("batch", ["jobs"]), ("jobset.x-k8s.io", ["jobsets"]), ("ray.io", ["rayclusters", "rayjobs"]))

_HOST_ACCESS = f"'{HOST_ACCESS_LABEL}' in namespaceObject.metadata.?labels.orValue({{}})"


class Policies(Construct):
    """`objects` are what teams come after."""

    def __init__(self, scope: Construct, id_: str) -> None:
        super().__init__(scope, id_)
        self.objects: list[ITerraformDependable] = []
        for name, spec in policies().items():
            self.objects += owned_policy(self, name, spec, where=_TEAMS)


def policies() -> dict[str, dict[str, Any]]:
    """The spec of each policy, by its name."""
    return {
        "jobs-of-members": _policy(
            _WORKLOADS,
            [
                {"name": "versions", "expression": "oldObject == null ? [object] : [object, oldObject]"},
                *_variables("object", ""),
                *_variables("oldObject", "old_"),
                *(_validation(row, "variables.templates", "t") for row in rules_of(Of.POD)),
                *map(_kept, rules_of(Of.TEMPLATE)),
                *(_validation(row, "variables.versions", "o") for row in rules_of(Of.WORKLOAD)),
                *(_validation(row, "variables.rays", "r") for row in rules_of(Of.RAY)),
                *_whole_workloads(),
            ],
            only_members=True,
        ),
        "deletions-of-members": _policy(
            _WORKLOADS,
            [
                {
                    "expression": "request.options.?propagationPolicy.orValue('') != 'Orphan'"
                    " && !request.options.?orphanDependents.orValue(false)",
                    "message": ": ".join(ORPHANS),
                }
            ],
            operations=["DELETE"],
            only_members=True,
        ),
        "pods-of-teams": _policy(
            [("", ["pods"])],
            [
                *(_validation(row, "[object]", "p") for row in rules_of(Of.POD)),
                {
                    "expression": f"!{_asks_for_chips('object')} || {_has_label('object')}",
                    "message": ": ".join(NOT_ADMITTED),
                },
            ],
            operations=["CREATE"],
        ),
        "services-of-teams": _policy(
            [("", ["services"])],
            [
                *(_validation(row, "[object]", "s") for row in rules_of(Of.SERVICE)),
                {
                    "expression": "object.spec.?type.orValue('') != 'LoadBalancer' || object.metadata.?annotations"
                    "[?'networking.gke.io/load-balancer-type'].orValue('') == 'Internal'",
                    "message": ": ".join(PUBLIC_LOAD_BALANCER),
                },
            ],
        ),
        "secrets-of-teams": _policy(
            [("", ["secrets"])], [_validation(row, "[object]", "s") for row in rules_of(Of.SECRET)]
        ),
    }


def _policy(
    watched: Sequence[tuple[str, Sequence[str]]],
    parts: Sequence[dict[str, str]],
    *,
    operations: Sequence[str] = ("CREATE", "UPDATE"),
    only_members: bool = False,
) -> dict[str, Any]:
    """`parts` are variables, which have a name, and validations."""
    resources = [
        {"apiGroups": [group], "apiVersions": ["*"], "operations": list(operations), "resources": list(kinds)}
        for group, kinds in watched
    ]
    conditions = [{"name": "not-a-controller", "expression": _NOT_A_CONTROLLER}]
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": resources},
        **({"matchConditions": conditions} if only_members else {}),
        **({"variables": variables} if (variables := [part for part in parts if "name" in part]) else {}),
        "validations": [part for part in parts if "name" not in part],
    }


def _variables(whole: str, prefix: str) -> Iterator[dict[str, str]]:
    """`rays` and `templates`: lists of what a workload describes, empty where there is no `whole`."""
    rays = f"variables.{prefix}rays"
    described = {
        "rays": f"{whole}.kind == 'RayCluster' ? [{whole}.spec]"
        f" : {whole}.kind == 'RayJob' && has({whole}.spec.rayClusterSpec) ? [{whole}.spec.rayClusterSpec] : []",
        "templates": f"({whole}.kind == 'Job' ? [{whole}.spec.template] : [])"
        f" + ({whole}.kind == 'JobSet' ? {whole}.spec.?replicatedJobs.orValue([])"
        ".map(j, j.template.spec.template) : [])"
        f" + {rays}.map(r, r.headGroupSpec.template)"
        f" + ({rays}.size() > 0 ? {rays}[0].?workerGroupSpecs.orValue([]).map(g, g.template) : [])"
        f" + ({whole}.kind == 'RayJob' && has({whole}.spec.submitterPodTemplate) ?"
        f" [{whole}.spec.submitterPodTemplate] : [])",
    }
    for name, expression in described.items():
        yield {"name": prefix + name, "expression": f"{whole} == null ? [] : ({expression})"}


def _whole_workloads() -> Iterator[dict[str, str]]:
    """Kueue counts a workload as it was admitted, and forgets it when it is finished or deleted."""
    finalizers = "metadata.?finalizers.orValue([])"
    no_new_finalizer = f"object.{finalizers}.all(f, oldObject != null && f in oldObject.{finalizers})"
    group_is_counted = (
        "variables.rays.all(r, r.?workerGroupSpecs.orValue([]).all(g,"
        " g.?minReplicas.orValue(0) <= g.?replicas.orValue(0)"
        f" && g.?replicas.orValue(0) <= g.?maxReplicas.orValue({MOST_RAY_REPLICAS})"
        f" && g.?replicas.orValue(0) <= {MOST_RAY_REPLICAS}"
        f" && g.?numOfHosts.orValue(1) >= 1 && g.?numOfHosts.orValue(1) <= {MOST_RAY_HOSTS}))"
    )
    suspend = "spec.?suspend.orValue(false)"
    ray = "object.kind in ['RayCluster', 'RayJob']"
    for where, words, expression in (
        ("metadata.finalizers", FINALIZER, no_new_finalizer),
        ("spec.suspend", STOPPED, f"oldObject == null || object.{suspend} == oldObject.{suspend}"),
        ("spec", RAY_CHANGED, f"oldObject == null || !({ray}) || object.spec == oldObject.spec"),
        ("workerGroupSpecs.replicas", RAY_SIZE, group_is_counted),
    ):
        yield {"expression": expression, "message": ": ".join((where, *words))}


def _validation(row: TeamRule, holders: str, each: str) -> dict[str, str]:
    holds = " && ".join(_holds(row, path, each) for path in row.paths)
    if row.without_chips:
        holds = f"{_asks_for_chips(each)} || ({holds})"
    if row.host_access:
        holds = f"({_HOST_ACCESS} && {_asks_for_chips(each)}) || ({holds})"
    return {"expression": f"{holders}.all({each}, {holds})", "message": _message(row)}


def _kept(row: TeamRule) -> dict[str, str]:
    """Not more templates break the rule than did before."""
    breaks = " || ".join(f"!({_holds(row, path, 't')})" for path in row.paths)
    return {
        "expression": f"variables.templates.filter(t, {breaks}).size() <= "
        f"variables.old_templates.filter(t, {breaks}).size()",
        "message": _message(row),
    }


def _message(row: TeamRule) -> str:
    places = dict.fromkeys(re.sub(r"[{}]", " ", ".".join(steps_of(path)[-2:])).strip() for path in row.paths)
    return f"{', '.join(places)}: {row.why}: {row.advice}"


def _holds(row: TeamRule, path: str, holder: str) -> str:
    """A row's condition on one of its paths, in CEL."""
    return _walk(row, steps_of(path), holder, 0)


def _walk(row: TeamRule, steps: Sequence[str], at: str, depth: int) -> str:
    for index, step in enumerate(steps):
        rest, item = steps[index + 1 :], f"x{depth}"
        if step == "containers[*]":
            both = f"({at}.?containers.orValue([]) + {at}.?initContainers.orValue([]))"
            return f"{both}.all({item}, {_walk(row, rest, item, depth + 1)})"
        if step.endswith("[*]"):
            return f"{at}.?{step[:-3]}.orValue([]).all({item}, {_walk(row, rest, item, depth + 1)})"
        if step.endswith("}"):
            name, _, prefix = step[:-1].partition("{")
            values = f"{at}.?{name}.orValue({{}})"
            holds = _walk(row, rest, f"{values}[{item}]", depth + 1)
            return f"{values}.all({item}, !{item}.startsWith('{prefix}') || {holds})"
        at = f"{at}.?{step}"
    return _taken(row, at, reached=not steps)


def _taken(row: TeamRule, value: str, *, reached: bool) -> str:
    """Whether a value is taken; `reached`: it is there, for it is an item."""
    if row.prefixes:
        text = value if reached else f"{value}.orValue('')"
        prefixes = f"namespaceObject.metadata.?annotations[?'{row.prefixes}'].orValue('').split(',')"
        return f"({text} == '' || {prefixes}.exists(p, {text}.startsWith(p)))"
    known = row.allowed or row.refused
    if row.at_most:
        return f"{value}.orValue(0) <= {row.at_most}"
    if not known:
        return "false" if reached else f"!{value}.hasValue()"
    present = value if reached else f"{value}.orValue({_cel(type(known[0])())})"
    return f"{'' if row.allowed else '!'}({present} in [{', '.join(map(_cel, known))}])"


def _cel(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _asks_for_chips(pod: str) -> str:
    """More than none: a limit of 0 chips is one, too. In a custom resource a quantity may be a number, of which CEL's
    own functions of quantities want to know nothing; in a pod it is a text in its canonical form.
    """
    chips = f"dyn(c.?resources.?limits.orValue({{}})[?'{TPU}'].orValue('0'))"
    return (
        f"({pod}.spec.containers + {pod}.spec.?initContainers.orValue([]))"
        f".exists(c, {chips} != dyn('0') && {chips} != dyn(0))"
    )


def _has_label(pod: str) -> str:
    return f"'{ADMITTED_POD_LABEL}' in {pod}.metadata.?labels.orValue({{}})"
