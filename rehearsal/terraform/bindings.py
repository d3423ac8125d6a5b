"""Read provider schemas out of the installed CDKTF bindings.

Every binding is a jsii package: `_jsii/*.tgz`, one folder a resource, and each `.js` carries the TypeScript it was
compiled from in an inline source map. That TypeScript marks every attribute `// name - computed: .., optional: ..,
required: ..` under its Terraform name, and its HCL converters say what is a block and how it nests. What the
bindings do not hold: limits on the number of items other than "at most one", sensitivity, descriptions, schema
versions.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib.metadata
import importlib.util
import json
import re
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rehearsal.terraform import schemas
from rehearsal.terraform.schemas import Attribute, Block, Nested, NestedBlock
from vocabulary.text_file import replace_text

PROVIDER = "provider"  # the name under which a provider's own configuration is asked for
DATA = "data."  # prefix of a data source's name, as Terraform writes it: data.google_project

_MARK = re.compile(r"^  // (\w+) - computed: (true|false), optional: (true|false), required: (true|false)$", re.M)
_CLASS = re.compile(r"^export class (\w+) .*$", re.M)
_HCL_FUNCTION = re.compile(r"^export function (\w+)ToHclTerraform\(", re.M)
_HCL_ENTRY = re.compile(r"^ +(\w+): \{\n +value: (.*),\n +isBlock: (true|false),\n +type: \"(\w+)\",$", re.M)
_COMPLEX = re.compile(r"= new ((?:cdktf\.)?\w+)\(this, \"\w+\"(?:, (true|false))?\)")
_GETTER = re.compile(r"this\.get(\w+)Attribute\(")
_FIELD = re.compile(r"^  private _\w+\??: (.+?); *$", re.M)

_GETTERS: dict[str, schemas.CtyType] = {
    "String": "string",
    "Number": "number",
    "Boolean": "bool",
    "List": ["list", "string"],
    "NumberList": ["list", "number"],
    "StringMap": ["map", "string"],
    "NumberMap": ["map", "number"],
    "BooleanMap": ["map", "bool"],
    "AnyMap": "dynamic",
}
_TYPESCRIPT: dict[str, schemas.CtyType] = {
    "string": "string",
    "number": "number",
    "boolean": "bool",
    "string[]": ["list", "string"],
    "number[]": ["list", "number"],
    "{ [key: string]: string }": ["map", "string"],
    "{ [key: string]: any }": "dynamic",
}
_STRING_MAPS: dict[str, schemas.CtyType] = {
    "cdktf.StringMap": ["map", "string"],
    "cdktf.NumberMap": ["map", "number"],
    "cdktf.BooleanMap": ["map", "bool"],
    "cdktf.StringMapList": ["list", ["map", "string"]],
}

# What the TypeScript does not say. Source: `terraform providers schema` of kubernetes 2.38.0 and helm 3.1.1.
_BY_HAND: dict[tuple[str, str], Attribute] = {
    ("kubernetes_manifest", "manifest"): Attribute(type_="dynamic", required=True),
    ("kubernetes_manifest", "object"): Attribute(type_="dynamic", optional=True, computed=True),
    ("kubernetes_manifest", "wait_for"): Attribute(type_=["object", {"fields": ["map", "string"]}], optional=True),
}
# A provider whose bindings are not installed, and the one that has the same settings. The schemas of the types that
# the stacks use of it are in PROVIDER.json beside this file; they were read, by this module, from its bindings.
_WITHOUT_BINDINGS = {"google-beta": "google"}
# Providers written with the plugin framework nest attributes where the older ones nest blocks.
_NESTED_ATTRIBUTES = ("helm",)


def package(provider: str) -> str:
    """The Python package of a provider's bindings."""
    return f"cdktf_cdktf_provider_{provider}"


def read(provider: str, names: Iterable[str], cache: Path) -> dict[str, Block]:
    """Schemas of `names` of one provider ("google"): resource types, "data.<type>", or "provider".

    Reading takes a second or two, so the answer is kept in the folder `cache`, under the version of the bindings.
    Raises KeyError for a name that the bindings do not have.
    """
    types = sorted(set(names))
    if like := _WITHOUT_BINDINGS.get(provider):
        recorded = json.loads(Path(__file__).with_name(f"{provider}.json").read_text(encoding="utf-8"))
        settings = read(like, [PROVIDER], cache)
        return settings | {name: schemas.from_json(recorded[name]) for name in types if name != PROVIDER}
    version = importlib.metadata.version(package(provider).replace("_", "-"))
    code = Path(__file__).read_bytes() + Path(schemas.__file__).read_bytes()
    reader = hashlib.sha256(code + "\n".join(types).encode()).hexdigest()[:12]
    kept = cache / f"schemas-{provider}-{version}-{reader}.json"
    if kept.is_file():
        return {name: schemas.from_json(value) for name, value in json.loads(kept.read_text()).items()}
    sources = _sources(provider, {_folder(provider, name) for name in types})
    blocks = {name: _schema(provider, name, sources) for name in types}
    with contextlib.suppress(OSError):  # a folder of somebody else's: read again next time
        kept.parent.mkdir(parents=True, exist_ok=True)
        replace_text(kept, json.dumps({name: schemas.to_json(block) for name, block in blocks.items()}))
    return blocks


def _folder(provider: str, name: str) -> str:
    """google_compute_network -> compute-network; data.google_project -> data-google-project."""
    if name == PROVIDER:
        return "provider"
    if name.startswith(DATA):
        return "data-" + name.removeprefix(DATA).replace("_", "-")
    return name.removeprefix(f"{provider}_").replace("_", "-")


def _sources(provider: str, folders: set[str]) -> Mapping[str, str]:
    spec = importlib.util.find_spec(package(provider))
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"the bindings of the {provider} provider are not installed")
    archive = next((Path(spec.origin).parent / "_jsii").glob("*.tgz"))
    sources: dict[str, str] = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            parts = member.name.split("/")
            if member.name.endswith(".js") and len(parts) > 3 and parts[2] in folders:
                content = tar.extractfile(member)
                assert content is not None
                sources[parts[2]] = sources.get(parts[2], "") + _typescript(content.read().decode())
    return sources


def _typescript(javascript: str) -> str:
    encoded = javascript[javascript.rindex("sourceMappingURL=data:") :].split("base64,", 1)[1].split()[0]
    return str(json.loads(base64.b64decode(encoded))["sourcesContent"][0])


def _schema(provider: str, name: str, sources: Mapping[str, str]) -> Block:
    folder = _folder(provider, name)
    if folder not in sources:
        raise KeyError(f"{name}: the bindings of the {provider} provider have no {folder}")
    text = _Text(sources[folder], nested_attributes=provider in _NESTED_ATTRIBUTES)
    main = re.search(
        r"^export class (\w+) extends cdktf\.Terraform(?:Resource|DataSource|Provider) ", text.source, re.M
    )
    assert main is not None, f"{name}: no resource class in the bindings"
    block = text.block(main.group(1), text.entries_of_class(main.group(1)))
    for (resource, attribute), value in _BY_HAND.items():
        if resource == name:
            block.blocks.pop(attribute, None)
            block.attributes[attribute] = value
    if name == PROVIDER:
        del block.attributes["alias"]  # Terraform's own; the bindings add it to every provider
    return block


@dataclass(frozen=True, kw_only=True)
class _Entry:
    """One row of an HCL converter."""

    value: str
    is_block: bool
    type_: str


@dataclass(frozen=True, kw_only=True)
class _Member:
    """One marked attribute of a class: its flags and the TypeScript that follows the mark."""

    computed: bool
    optional: bool
    required: bool
    body: str


class _Text:
    """The TypeScript of one resource, cut into classes and converters."""

    def __init__(self, source: str, *, nested_attributes: bool) -> None:
        self.source = source
        self.nested_attributes = nested_attributes

    @cached_property
    def classes(self) -> dict[str, str]:
        starts = list(_CLASS.finditer(self.source))
        ends = [start.start() for start in starts[1:]] + [len(self.source)]
        return {
            start.group(1): self.source[start.start() : end].split("\nexport interface ")[0]
            for start, end in zip(starts, ends, strict=True)
        }

    @cached_property
    def converters(self) -> dict[str, dict[str, _Entry]]:
        starts = list(_HCL_FUNCTION.finditer(self.source))
        return {
            start.group(1): _entries(self.source[start.start() : self.source.index("\n}\n", start.start())])
            for start in starts
        }

    def entries_of_class(self, name: str) -> dict[str, _Entry]:
        body = self.classes[name]
        at = body.find("synthesizeHclAttributes()")
        return _entries(body[at:]) if at >= 0 else {}

    def struct(self, name: str) -> Block:
        """The block that an interface describes: `name` is the interface's, without List, Map or OutputReference."""
        entries = self.converters[name[0].lower() + name[1:]]
        reference = name + "OutputReference"
        return self.block(reference, entries) if reference in self.classes else self._plain(name, entries)

    def block(self, class_name: str, entries: dict[str, _Entry]) -> Block:
        attributes: dict[str, Attribute] = {}
        blocks: dict[str, NestedBlock] = {}
        for name, member in self._members(self.classes[class_name]).items():
            entry = entries.get(name)
            nested = self._nested_block(member, entry)
            if nested is not None:
                blocks[name] = nested
            else:
                attributes[name] = self._attribute(member, entry)
        return Block(attributes=attributes, blocks=blocks)

    @staticmethod
    def _members(body: str) -> dict[str, _Member]:
        marks = list(_MARK.finditer(body))
        ends = [mark.start() for mark in marks[1:]] + [len(body)]
        return {
            mark.group(1): _Member(
                computed=mark.group(2) == "true",
                optional=mark.group(3) == "true",
                required=mark.group(4) == "true",
                body=body[mark.end() : end],
            )
            for mark, end in zip(marks, ends, strict=True)
        }

    def _nested_block(self, member: _Member, entry: _Entry | None) -> NestedBlock | None:
        if (
            entry is None
            or not entry.is_block
            or self.nested_attributes
            or re.search(r"listMapperHcl\(\w+, false\)", entry.value)
        ):
            return None
        many = "listMapperHcl(" in entry.value or "hashMapperHcl(" in entry.value
        converter = re.search(r"(\w+)ToHclTerraform", entry.value)
        assert converter is not None
        name = converter.group(1)[0].upper() + converter.group(1)[1:]
        nesting = "single" if entry.type_ == "struct" else entry.type_
        return NestedBlock(block=self.struct(name), nesting=nesting, single_item=not many)

    def _attribute(self, member: _Member, entry: _Entry | None) -> Attribute:
        type_, nested = self._type(member, entry)
        return Attribute(
            type_=type_, nested=nested, required=member.required, optional=member.optional, computed=member.computed
        )

    def _type(self, member: _Member, entry: _Entry | None) -> tuple[schemas.CtyType, Nested | None]:
        made = _COMPLEX.search(member.body)
        if made is not None:
            return self._complex(made.group(1), is_set=made.group(2) == "true")
        getter = _GETTER.search(member.body)
        if getter is not None:
            type_ = _GETTERS[getter.group(1)]
            return (["set", type_[1]] if "cdktf.Fn.tolist(" in member.body else type_), None
        field = _FIELD.search(member.body)
        assert field is not None, member.body[:200]
        written = field.group(1).removesuffix(" | cdktf.IResolvable")
        return self._written(written, entry)

    def _written(self, written: str, entry: _Entry | None) -> tuple[schemas.CtyType, Nested | None]:
        """The type of a provider's own setting, from its TypeScript type."""
        if written in _TYPESCRIPT:
            type_ = _TYPESCRIPT[written]
            is_set = entry is not None and entry.type_ == "set"
            return (["set", type_[1]] if is_set else type_), None
        return self._nest("list" if written.endswith("[]") else "single", self.struct(written.removesuffix("[]")))

    def _complex(self, class_name: str, *, is_set: bool) -> tuple[schemas.CtyType, Nested | None]:
        if class_name in _STRING_MAPS:
            return _STRING_MAPS[class_name], None
        for suffix, nesting in (("OutputReference", "single"), ("List", "set" if is_set else "list"), ("Map", "map")):
            struct = class_name.removesuffix(suffix)
            if struct != class_name and struct + "OutputReference" in self.classes:
                return self._nest(nesting, self.struct(struct))
        raise AssertionError(f"{class_name}: not known how this nests")

    def _nest(self, nesting: str, block: Block) -> tuple[schemas.CtyType, Nested | None]:
        attributes = block.attributes
        nested = Nested(nesting=nesting, attributes=attributes) if self.nested_attributes else None
        return schemas.nested_type(nesting, attributes), nested

    def _plain(self, name: str, entries: dict[str, _Entry]) -> Block:
        """A struct without an output class (they appear in provider configurations): flags from the interface's
        question marks.
        """
        interface = re.search(rf"^export interface {name} {{\n(.*?)^}}", self.source, re.M | re.S)
        assert interface is not None
        attributes: dict[str, Attribute] = {}
        for documented, optional, written in re.findall(
            r"#(\w+) \w+#\w+\}\n  \*/\n  readonly \w+(\??): (.+);$", interface.group(1), re.M
        ):
            type_, nested = self._written(written.removesuffix(" | cdktf.IResolvable"), entries.get(documented))
            attributes[documented] = Attribute(
                type_=type_, nested=nested, optional=bool(optional), required=not optional
            )
        return Block(attributes=attributes)


def _entries(text: str) -> dict[str, _Entry]:
    return {
        name: _Entry(value=value, is_block=is_block == "true", type_=type_)
        for name, value, is_block, type_ in _HCL_ENTRY.findall(text)
    }
