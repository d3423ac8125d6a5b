"""Terraform's plugin protocol, version 6, as far as Terraform itself speaks it: messages and their field numbers.

Source of the facts: `docs/plugin-protocol/tfplugin6.proto` of hashicorp/terraform. Only the messages that
Terraform 1.6-1.14 and OpenTofu send for resources and data sources are here; protobuf skips fields it does not
know.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = "tfplugin6"

_SCALARS = {"int64": 3, "bool": 8, "string": 9, "bytes": 12}

# message -> field -> (number, type); "*" before a type means repeated, "{}" a map from string, "|" that one of the
# fields so marked is there, which an index of 0 is too.
_MESSAGES: dict[str, dict[str, tuple[int, str]]] = {
    "DynamicValue": {"msgpack": (1, "bytes"), "json": (2, "bytes")},
    "RawState": {"json": (1, "bytes")},
    "Step": {"attribute_name": (1, "|string"), "element_key_string": (2, "|string"), "element_key_int": (3, "|int64")},
    "AttributePath": {"steps": (1, "*Step")},
    # severity: 1 error, 2 warning
    "Diagnostic": {
        "severity": (1, "int64"),
        "summary": (2, "string"),
        "detail": (3, "string"),
        "attribute": (4, "AttributePath"),
    },
    # nesting of a block: 1 single, 2 list, 3 set, 4 map; of an object: the same numbers
    "Attribute": {
        "name": (1, "string"),
        "type": (2, "bytes"),
        "required": (4, "bool"),
        "optional": (5, "bool"),
        "computed": (6, "bool"),
        "sensitive": (7, "bool"),
        "nested_type": (10, "Object"),
    },
    "Object": {"attributes": (1, "*Attribute"), "nesting": (3, "int64")},
    "NestedBlock": {
        "type_name": (1, "string"),
        "block": (2, "Block"),
        "nesting": (3, "int64"),
        "min_items": (4, "int64"),
        "max_items": (5, "int64"),
    },
    "Block": {"version": (1, "int64"), "attributes": (2, "*Attribute"), "block_types": (3, "*NestedBlock")},
    "Schema": {"version": (1, "int64"), "block": (2, "Block")},
    "ServerCapabilities": {"plan_destroy": (1, "bool")},
    "GetProviderSchemaRequest": {},
    "GetProviderSchemaResponse": {
        "provider": (1, "Schema"),
        "resource_schemas": (2, "{}Schema"),
        "data_source_schemas": (3, "{}Schema"),
        "diagnostics": (4, "*Diagnostic"),
        "server_capabilities": (6, "ServerCapabilities"),
    },
    "ValidateProviderConfigRequest": {"config": (1, "DynamicValue")},
    "ValidateProviderConfigResponse": {"diagnostics": (2, "*Diagnostic")},
    "ValidateResourceConfigRequest": {"type_name": (1, "string"), "config": (2, "DynamicValue")},
    "ValidateResourceConfigResponse": {"diagnostics": (1, "*Diagnostic")},
    "ValidateDataResourceConfigRequest": {"type_name": (1, "string"), "config": (2, "DynamicValue")},
    "ValidateDataResourceConfigResponse": {"diagnostics": (1, "*Diagnostic")},
    "UpgradeResourceStateRequest": {"type_name": (1, "string"), "version": (2, "int64"), "raw_state": (3, "RawState")},
    "UpgradeResourceStateResponse": {"upgraded_state": (1, "DynamicValue"), "diagnostics": (2, "*Diagnostic")},
    "ConfigureProviderRequest": {"terraform_version": (1, "string"), "config": (2, "DynamicValue")},
    "ConfigureProviderResponse": {"diagnostics": (1, "*Diagnostic")},
    "ReadResourceRequest": {"type_name": (1, "string"), "current_state": (2, "DynamicValue")},
    "ReadResourceResponse": {"new_state": (1, "DynamicValue"), "diagnostics": (2, "*Diagnostic")},
    "PlanResourceChangeRequest": {
        "type_name": (1, "string"),
        "prior_state": (2, "DynamicValue"),
        "proposed_new_state": (3, "DynamicValue"),
        "config": (4, "DynamicValue"),
    },
    "PlanResourceChangeResponse": {
        "planned_state": (1, "DynamicValue"),
        "requires_replace": (2, "*AttributePath"),
        "diagnostics": (4, "*Diagnostic"),
        "legacy_type_system": (5, "bool"),
    },
    "ApplyResourceChangeRequest": {
        "type_name": (1, "string"),
        "prior_state": (2, "DynamicValue"),
        "planned_state": (3, "DynamicValue"),
        "config": (4, "DynamicValue"),
    },
    "ApplyResourceChangeResponse": {
        "new_state": (1, "DynamicValue"),
        "diagnostics": (3, "*Diagnostic"),
        "legacy_type_system": (4, "bool"),
    },
    "ImportResourceStateRequest": {"type_name": (1, "string"), "id": (2, "string")},
    "ImportedResource": {"type_name": (1, "string"), "state": (2, "DynamicValue")},
    "ImportResourceStateResponse": {"imported_resources": (1, "*ImportedResource"), "diagnostics": (2, "*Diagnostic")},
    "ReadDataSourceRequest": {"type_name": (1, "string"), "config": (2, "DynamicValue")},
    "ReadDataSourceResponse": {"state": (1, "DynamicValue"), "diagnostics": (2, "*Diagnostic")},
    "StopProviderRequest": {},
    "StopProviderResponse": {"Error": (1, "string")},
}

# The calls of the service, each with its request and response named after it.
CALLS = [name.removesuffix("Request") for name in _MESSAGES if name.endswith("Request")]


def _build() -> dict[str, type[Any]]:
    file = descriptor_pb2.FileDescriptorProto(name="tfplugin6.proto", package=PACKAGE, syntax="proto3")
    for message, fields in _MESSAGES.items():
        proto = file.message_type.add(name=message)
        for field, (number, kind) in fields.items():
            repeated = kind.startswith(("*", "{}"))
            target = kind.lstrip("*{}|")
            out = proto.field.add(name=field, number=number, label=3 if repeated else 1)
            if kind.startswith("|"):
                out.oneof_index = 0
                if not proto.oneof_decl:
                    proto.oneof_decl.add(name="one")
            if kind.startswith("{}"):
                entry = proto.nested_type.add(name="".join(part.title() for part in field.split("_")) + "Entry")
                entry.options.map_entry = True
                entry.field.add(name="key", number=1, label=1, type=9)
                entry.field.add(name="value", number=2, label=1, type=11, type_name=f".{PACKAGE}.{target}")
                out.type, out.type_name = 11, f".{PACKAGE}.{message}.{entry.name}"
            elif target in _SCALARS:
                out.type = _SCALARS[target]
            else:
                out.type, out.type_name = 11, f".{PACKAGE}.{target}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in _MESSAGES
    }


MESSAGES = _build()
