"""Who may do what, and who gets what is idle: members, borrowing, lending and fair sharing, in lines for people.

Read from the states of the stacks, as `rehearsal.inventory` gives them: resource types with their attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from rehearsal.cloud import Attributes
from vocabulary.keys import TEAM_LABEL, TPU
from vocabulary.quantity import parse, readable

_READ = {"get", "list", "watch"}
_CHANGE = {"create", "update", "patch", "delete"}

Resources = Sequence[tuple[str, Attributes]]


def lines(resources: Resources) -> list[str]:
    """Of one stack; none where it holds nothing of this."""
    return [*_members(resources), *_fair_sharing(resources), *_limits(resources)]


def _of(type_: str, resources: Resources) -> list[Attributes]:
    return [attributes for of, attributes in resources if of == type_]


def _teams(resources: Resources) -> list[str]:
    """Each has a namespace of its name, with the label of a team."""
    namespaces = [item["metadata"][0] for item in _of("kubernetes_namespace_v1", resources)]
    return [str(metadata["name"]) for metadata in namespaces if TEAM_LABEL in (metadata.get("labels") or {})]


def _together(lines_of: Mapping[str, str]) -> dict[str, str]:
    """What is said of several names, said once of all of them."""
    names: dict[str, list[str]] = {}
    for name, line in lines_of.items():
        names.setdefault(line, []).append(name)
    return {", ".join(same): line for line, same in names.items()}


def _members(resources: Resources) -> list[str]:
    bindings = {_namespace(binding): binding for binding in _of("kubernetes_role_binding_v1", resources)}
    teams = {team: _subjects(bindings[team]) if team in bindings else "" for team in _teams(resources)}
    lines = [
        f"members of {names}: {subjects or 'none; only who administers the cluster submits jobs there'}"
        for names, subjects in _together(teams).items()
    ]
    roles = {(_namespace(role), _name(role)): role["rule"] for role in _of("kubernetes_role_v1", resources)}
    rights = {team: _rights(roles[team, _role(bindings[team])]) for team in teams if team in bindings}
    lines += [f"members of {team} may, in their team's namespace: {words}" for team, words in _together(rights).items()]
    members = {_subjects({"subject": [subject]}) for binding in bindings.values() for subject in binding["subject"]}
    everywhere = {_name(role): role["rule"] for role in _of("kubernetes_cluster_role_v1", resources)}
    for binding in _of("kubernetes_cluster_role_binding_v1", resources):
        subjects = {_subjects({"subject": [subject]}) for subject in binding["subject"]}
        if _role(binding) in everywhere and subjects <= members:
            lines.append(f"every member may, in the whole cluster: {_rights(everywhere[_role(binding)])}")
    return lines


def _namespace(attributes: Attributes) -> str:
    return str(attributes["metadata"][0].get("namespace") or "")


def _name(attributes: Attributes) -> str:
    return str(attributes["metadata"][0]["name"])


def _role(binding: Attributes) -> str:
    return str(binding["role_ref"][0]["name"])


def _subjects(binding: Attributes) -> str:
    return ", ".join(f"{'group ' * (subject['kind'] == 'Group')}{subject['name']}" for subject in binding["subject"])


def _rights(rules: Iterable[Attributes]) -> str:
    """ "change jobs, jobsets; read pods" """
    kinds: dict[str, list[str]] = {}
    for rule in rules:
        verbs = set(rule["verbs"])
        words = "change" if verbs >= _CHANGE else "read" if verbs <= _READ else " and ".join(sorted(verbs))
        kinds.setdefault(words, []).extend(rule["resources"])
    return "; ".join(f"{verb} {', '.join(names)}" for verb, names in kinds.items())


def _fair_sharing(resources: Resources) -> list[str]:
    """Kueue's own configuration says it; with one team there is nobody to share with."""
    if len(_teams(resources)) < 2:
        return []
    for release in _of("helm_release", resources):
        for text in release.get("values") or []:
            manager = (yaml.safe_load(text) or {}).get("managerConfig") or {}
            if configuration := manager.get("controllerManagerConfigYaml"):
                fair = "fairSharing" in yaml.safe_load(configuration)
                return [
                    "fair sharing: what is idle goes to the team that borrows least for its share"
                    if fair
                    else "no fair sharing: what is idle goes to the job that came first"
                ]
    return []


def _limits(resources: Resources) -> list[str]:
    """What the ClusterQueues may borrow from and lend to each other; one alone does neither."""
    bodies: list[Any] = [manifest["manifest"]["value"] for manifest in _of("kubernetes_manifest", resources)]
    queues = {body["metadata"]["name"]: body["spec"] for body in bodies if body["kind"] == "ClusterQueue"}
    if len(queues) < 2:
        return []
    words = {name: _limits_of(spec) for name, spec in queues.items()}
    return [f"{names}: {limits}" for names, limits in _together(words).items()]


def _limits_of(queue: Attributes) -> str:
    weight = (queue.get("fairSharing") or {}).get("weight")
    return (
        f"borrowing {_limit(queue, 'borrowingLimit', 'what others leave idle')}; "
        f"lending {_limit(queue, 'lendingLimit', 'what is idle')}"
    ) + (f"; fair sharing weight {readable('', parse(weight))}" if weight else "")


def _limit(queue: Attributes, kind: str, unlimited: str) -> str:
    """In chips: cores and memory go with them."""
    chips = {
        flavor["name"]: readable(TPU, parse(resource[kind]))
        for group in queue["resourceGroups"]
        for flavor in group["flavors"]
        for resource in flavor["resources"]
        if resource["name"] == TPU and kind in resource
    }
    if not chips:
        return unlimited
    some = ", ".join(f"{number} chips of {flavor}" for flavor, number in chips.items() if number != "0")
    return f"at most {some}" if some else "nothing"
