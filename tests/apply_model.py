"""A small Terraform for tests of approvals: objects in a cloud, a state, plans in Terraform's JSON, and applies that
stop anywhere.

An object has an id that the cloud gives, `kind` (a change replaces it), `size` and `mark` (changed in place). Of
address "b" the new object is made before the old one goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.plans import changed, plan

Attributes = dict[str, int]

# What an action does, in parts that can be compared: ("make", name, values), ("remove", name), ("remove half made", id)
# or ("set", name, attribute, value).
Part = tuple[Any, ...]

WHOLE, HALF, KILLED = "whole", "half", "killed"  # how the step at which an apply stops is left


def address_of(name: str) -> str:
    return f"google_thing.{name}"


@dataclass
class Terraform:
    """`cloud` is by id; `state` has an id and the values last seen, by name; `half_made` are ids."""

    cloud: dict[int, Attributes] = field(default_factory=dict)
    state: dict[str, tuple[int, Attributes]] = field(default_factory=dict)
    half_made: set[int] = field(default_factory=set)
    deposed: dict[str, int] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)  # whose object it was made as
    last: int = 0

    def new(self, name: str, values: Attributes) -> int:
        self.last += 1
        self.cloud[self.last], self.names[self.last] = dict(values), name
        return self.last

    def plan(self, config: Mapping[str, Attributes]) -> dict[str, Any]:
        """As `terraform show -json` has it."""
        drift, resources = [], []
        for name, (id_, seen) in self.state.items():
            now = self.cloud.get(id_)
            if now is None:
                drift.append(changed({"id": id_, **seen}, None, actions=("delete",), address=address_of(name)))
            elif now != seen:
                drift.append(changed({"id": id_, **seen}, {"id": id_, **now}, address=address_of(name)))
        for name, (actions, before, after, tainted) in self._actions(config).items():
            unknown = {"id": True} if "create" in actions else False
            reason = "replace_because_tainted" if tainted else "replace_because_cannot_update"
            more = {"action_reason": reason} if len(actions) == 2 else {}
            resources.append(
                changed(before, after, actions=actions, address=address_of(name), after_unknown=unknown, **more)
            )
        for name, id_ in self.deposed.items():
            if id_ in self.cloud:
                resources.append(
                    changed({"id": id_}, None, actions=("delete",), address=address_of(name), deposed="0a1b")
                )
        return plan(*resources, drift=tuple(drift))

    def _actions(self, config: Mapping[str, Attributes]) -> dict[str, tuple[tuple[str, ...], Any, Any, bool]]:
        actions: dict[str, tuple[tuple[str, ...], Any, Any, bool]] = {}
        for name in sorted(self.state.keys() | config.keys()):
            id_ = self.state[name][0] if name in self.state else 0
            now, configured = self.cloud.get(id_), config.get(name)
            replacing = ("create", "delete") if name == "b" else ("delete", "create")
            if now is None:
                if configured is not None:
                    actions[name] = (("create",), None, configured, False)
            elif configured is None:
                actions[name] = (("delete",), {"id": id_, **now}, None, False)
            elif id_ in self.half_made or now["kind"] != configured["kind"]:
                actions[name] = (replacing, {"id": id_, **now}, configured, id_ in self.half_made)
            elif now != configured:
                actions[name] = (("update",), {"id": id_, **now}, {"id": id_, **configured}, False)
        return actions

    def parts(self, config: Mapping[str, Attributes]) -> set[Part]:
        """What the plan of now does."""
        out = {self._removal(name, id_) for name, id_ in self.deposed.items() if id_ in self.cloud}
        for name, (actions, before, after, _) in self._actions(config).items():
            if actions == ("delete",):
                out.add(("remove", name))  # what was reviewed is that nothing of this name stays
            elif "delete" in actions:
                out.add(self._removal(name, before["id"]))
            if "create" in actions:
                out.add(("make", name, *sorted(after.items())))
            if actions == ("update",):
                out |= {("set", name, key, after[key]) for key in after if after[key] != before[key]}
        return out

    def _removal(self, name: str, id_: int) -> Part:
        return ("remove half made", id_) if id_ in self.half_made else ("remove", name)

    def apply(self, config: Mapping[str, Attributes], *, steps: int, how: str) -> Iterator[Part]:
        """Does what the plan says, at most so many steps, and yields the parts that the state has as done.

        The step at which it stops is not begun (WHOLE), begun (HALF), or done and in no state (KILLED); if it was
        killed before the first step was over, the state does not even have what the refresh has seen.
        """
        before = (dict(self.state), dict(self.deposed))
        actions = self._actions(config)
        self._refresh()
        for number, step in enumerate(self._steps(config, actions)):
            if number < steps:
                yield from self._do(step)
                continue
            if how == HALF:
                yield from self._half(step)
            elif how == KILLED:
                saved = (dict(self.state), dict(self.deposed)) if number else before
                list(self._do(step))
                self.state, self.deposed = saved
            return

    def _refresh(self) -> None:
        self.state = {name: (id_, dict(self.cloud[id_])) for name, (id_, _) in self.state.items() if id_ in self.cloud}
        self.deposed = {name: id_ for name, id_ in self.deposed.items() if id_ in self.cloud}

    def _steps(self, config: Mapping[str, Attributes], actions: Mapping[str, Any]) -> list[Part]:
        steps: list[Part] = [("remove deposed", name) for name in self.deposed]
        for name, (verbs, *_) in actions.items():
            for verb in verbs:
                if verb == "create":
                    steps.append(("make", name, *sorted(config[name].items())))
                elif verb == "update":
                    steps.append(("update", name, config[name]))
                elif verbs == ("delete",):
                    steps.append(("delete", name))
                else:
                    steps.append(("remove deposed" if verbs == ("create", "delete") else "remove", name))
        return steps

    def _do(self, step: Part) -> Iterator[Part]:
        verb, name, *rest = step
        if verb == "make":
            if name in self.state:
                self.deposed[name] = self.state[name][0]
            self.state[name] = (self.new(name, dict(rest)), dict(rest))
            yield step
        elif verb == "update":
            id_, seen = self.state[name]
            yield from (("set", name, key, value) for key, value in rest[0].items() if seen[key] != value)
            self.cloud[id_] = dict(rest[0])
            self.state[name] = (id_, dict(rest[0]))
        elif verb in ("delete", "remove"):
            id_ = self.state.pop(name)[0]
            del self.cloud[id_]
            yield ("remove", name) if verb == "delete" else self._removal(name, id_)
        else:
            id_ = self.deposed.pop(name)
            self.cloud.pop(id_, None)
            yield self._removal(name, id_)

    def _half(self, step: Part) -> Iterator[Part]:
        """An object half made, or the first value of a change."""
        verb, name, *rest = step
        if verb == "make":
            list(self._do(("make", name, *((key, 0 if key == "mark" else value) for key, value in rest))))
            self.half_made.add(self.state[name][0])
        elif verb == "update":
            _, seen = self.state[name]
            key = next(key for key, value in rest[0].items() if seen[key] != value)
            yield from self._do(("update", name, {**seen, key: rest[0][key]}))
