"""What is known of each Terraform resource type and data source: a JSON file in this folder, named after it.

The stacks read the permissions, `tpuenv recover` the import ids, the rehearsal all of it. A file is read when its type
is first asked for. docs/resource-types.md says where each fact comes from. Imports the standard library only.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent

DATA = "data."  # before the type of a data source, as Terraform writes it: data.google_project


class UnknownResourceType(LookupError):
    """No file describes the type."""

    def __init__(self, type_: str) -> None:
        super().__init__(f"{file_of(type_)} does not exist; docs/resource-types.md says what to write into it")


class DamagedFacts(ValueError):
    """A type's file cannot be used. The text is one line, with the file and what is wrong."""


@dataclass(frozen=True, kw_only=True)
class Permissions:
    """The IAM permissions that Google checks, by what Terraform does; None where a file does not say.

    source      the page that documents them
    none        why none are checked, in place of all others
    role        a role of Google's in place of single permissions
    read        checked when the provider reads the resource
    create, update, delete
                checked when it does that
    operation   checked while it waits for the operation that each of these starts
    also        permissions that none of Terraform's calls need, each with who needs it
    withheld    permissions of these that the builds do not get, each with the reason
    own_only    why the builds get those of update and delete for the environment's own resources only
    on          the full name of the resource that IAM checks, where that is not the type's `name`
    parent      the resource that IAM checks instead, also when it creates: {cluster} of a node pool
    acts_as     attributes that name a service account, which takes iam.serviceAccounts.actAs on it
    """

    source: str = ""
    none: str = ""
    role: str = ""
    read: tuple[str, ...] | None = None
    create: tuple[str, ...] | None = None
    update: tuple[str, ...] | None = None
    delete: tuple[str, ...] | None = None
    operation: str = ""
    also: Mapping[str, str] = field(default_factory=dict)
    withheld: Mapping[str, str] = field(default_factory=dict)
    own_only: str = ""
    on: str = ""
    parent: str = ""
    acts_as: tuple[str, ...] = ()

    def of(self, operation: str) -> tuple[str, ...]:
        """What Google checks for "read", "create", "update" or "delete"."""
        checked: tuple[str, ...] = getattr(self, operation) or ()
        return (*checked, self.operation) if checked and self.operation and operation != "read" else checked


@dataclass(frozen=True, kw_only=True)
class Listing:
    """How to list the objects of a type whose ids the server gives.

    host        of the API; the list method's path is the type's `name` up to {number}
    items       the field of its answer that holds the objects
    field       an object's field with the name that a person chose; `attribute` is that name in Terraform: of an
                attribute that is JSON, with the key after a dot
    id_         an object's field with the id, whole or as the last part of a name
    permission  what listing takes; `role` is a role of Google's that has it
    version     of the API
    """

    host: str
    items: str
    field: str
    attribute: str
    id_: str
    permission: str
    role: str
    version: str = "v1"

    def chosen(self, values: Mapping[str, Any]) -> Any:
        """The name that a person chose, of the attributes in Terraform; None where it is not known."""
        attribute, _, key = self.attribute.partition(".")
        value = values.get(attribute)
        return json.loads(value).get(key) if key and isinstance(value, str) else value


@dataclass(frozen=True, kw_only=True)
class ProviderFacts:
    """What the provider's schema and code say and its bindings do not. Paths have no indexes: "node_config.spot".

    version         of the schema, as the state has it
    sdk             whether the type is written with terraform-plugin-sdk, which fills in defaults at plan
    replaces        attributes whose change replaces the resource (`ForceNew`)
    count_replaces  blocks whose number does; what is in them does not (hashicorp/terraform-plugin-sdk issue 1314)
    computed_blocks blocks that the server decides where the configuration has none
    from_provider   attributes that are planned from the settings of the provider where they are not set
    defaults        values of attributes that are not set
    unplanned_with  by an attribute, others that stay as they were where it is true and they are not set
                    (`DiffSuppressFunc`): their defaults are not planned
    sensitive       attributes that Terraform does not show; a state that does not say so is planned to be updated
    forms           attributes that the state has in a form of their own (`StateFunc`): "upper" for capitals
    never_sent      attributes that are planned in place and that no update sends to the API
    """

    version: int = 0
    sdk: bool = False
    replaces: tuple[str, ...] = ()
    count_replaces: tuple[str, ...] = ()
    computed_blocks: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    from_provider: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    unplanned_with: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    forms: Mapping[str, str] = field(default_factory=dict)
    never_sent: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Facts:
    """One resource type or data source.

    api         the Google API that serves it
    noun        what the provider calls it in errors: "Error creating RouterNat: ..."
    name        the full name of an object, by `fill` from its attributes; {number} is one that the server gives
    exists      Google's words where the name is taken, with {name} and {last}, its last part
    import_     the id that `terraform import` takes, by `fill`, where it is not `name`
    not_imported
                why objects of this type are not imported, and are not counted as owned by a state
    listing     how to list the objects whose names have a {number}
    """

    type_: str
    api: str = ""
    noun: str = ""
    name: str = ""
    exists: str = "The resource '{name}' already exists"
    import_: str = ""
    not_imported: str = ""
    listing: Listing | None = None
    permissions: Permissions = Permissions()
    provider: ProviderFacts | None = None

    @property
    def collection(self) -> str:
        """The full name of what an object with a {number} is in."""
        return self.name.removesuffix("/{number}")

    @property
    def import_id(self) -> str:
        """The template of the import id; "" where there is none."""
        return self.import_ or ("" if "{number}" in self.name else self.name)


def file_of(type_: str) -> str:
    """The path of a type's file in this repository."""
    return f"vocabulary/resource_types/{type_}.json"


def is_described(type_: str) -> bool:
    """Whether there is a file for it."""
    return (FOLDER / f"{type_}.json").is_file()


def all_types() -> tuple[str, ...]:
    """Every type that has a file, data sources under "data." and their type."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.json")))


@functools.cache
def facts_of(type_: str) -> Facts:
    """What the type's file says. Raises UnknownResourceType, and DamagedFacts for a file with a mistake in it."""
    if not is_described(type_):
        raise UnknownResourceType(type_)
    try:
        given = json.loads((FOLDER / f"{type_}.json").read_text(encoding="utf-8"))
        parts = {
            key: _record(class_, given.pop(key))
            for key, class_ in (("permissions", Permissions), ("listing", Listing), ("provider", ProviderFacts))
            if key in given
        }
        result: Facts = _record(Facts, {"type": type_, **given}, **parts)
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise DamagedFacts(f"{file_of(type_)}: {error}; correct it, or restore it from git") from error
    return result


def check_files() -> None:
    """Reads every type's file. Raises DamagedFacts."""
    for type_ in all_types():
        facts_of(type_)


def _record(class_: Any, given: dict[str, Any], **parts: Any) -> Any:
    """An object of a dataclass; a trailing underscore of its names is not in the file. Raises ValueError."""
    names = {known.name.rstrip("_"): known.name for known in fields(class_)}
    if unknown := given.keys() - names.keys():
        raise ValueError(f"{', '.join(sorted(unknown))}: no such key; there are {', '.join(names)}")
    values = {names[key]: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
    return class_(**values, **parts)


def is_imported(type_: str) -> bool:
    """Whether objects of the type are searched for in the cloud and imported; True for a type without a file."""
    return not (is_described(type_) and facts_of(type_).not_imported)


def provider_facts(type_: str) -> ProviderFacts:
    """The type's, without any where nothing is known of it."""
    return (facts_of(type_).provider if is_described(type_) else None) or ProviderFacts()


def missing_facts(type_: str) -> list[str]:
    """What the file of a type still has to say, each as one sentence; [] where it is complete."""
    if not is_described(type_):
        return [str(UnknownResourceType(type_))]
    return [f"{file_of(type_)}: {lack}" for lack in _lacks(facts_of(type_))]


def _lacks(row: Facts) -> Iterator[str]:
    permissions, is_data, is_google = row.permissions, row.type_.startswith(DATA), "google_" in row.type_
    if not (permissions.source or permissions.none):
        yield '"permissions" has no "source": the page that documents them; or "none": why none are checked'
    if not (permissions.none or permissions.role):
        for operation in ("read",) if is_data else ("read", "create", "update", "delete"):
            if getattr(permissions, operation) is None:
                yield f'"permissions" has no "{operation}": the list of permissions it takes; [] for none'
    if is_data or (permissions.none and not is_google):
        return
    if row.provider is None:
        yield '"provider" is missing: what replaces the resource ("replaces") and what the bindings do not say'
    if not (row.import_id or row.listing or row.not_imported):
        yield '"import" is missing: the id that terraform import takes; "listing" where the server gives the id'
    if is_google:
        for key, what in (
            ("api", "the API that serves it"),
            ("noun", "what the provider calls it in errors"),
            ("name", "the full name of an object, with {attribute} in it; {number} where the server gives it"),
        ):
            if not getattr(row, key):
                yield f'"{key}" is missing: {what}'


_PLACE = re.compile(r"\{([\w.]+)(:last)?\}")
_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")


def fill(template: str, values: Mapping[str, Any]) -> str | None:
    """`template` with the values of attributes in it; None when it needs one that is missing or not a text.

    {attribute} is a value, {block.attribute} the value in the first block of that name, {attribute:last} the part
    after the last slash. What is in [brackets] is left out where a value of it is missing.
    """
    always, optional = _OPTIONAL.split(template)[::2], _OPTIONAL.findall(template)
    needed = [_filled(part, values) for part in always]
    if None in needed:
        return None
    return "".join(f"{part}{_filled(more, values) or ''}" for part, more in zip(needed, [*optional, ""], strict=True))


def _filled(template: str, values: Mapping[str, Any]) -> str | None:
    if not all(_value(values, match[1]) for match in _PLACE.finditer(template)):
        return None
    return _PLACE.sub(lambda match: _last(_value(values, match[1]), only=bool(match[2])), template)


def _last(text: str, *, only: bool) -> str:
    return text.rpartition("/")[2] if only else text


def _value(values: Any, path: str) -> str:
    for name in path.split("."):
        values = values[0] if isinstance(values, list) and values else values
        values = values.get(name) if isinstance(values, Mapping) else None
    return values if isinstance(values, str) else ""
