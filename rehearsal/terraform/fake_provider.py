"""One fake provider: Terraform's protocol on one side, the rules on the other."""

from __future__ import annotations

import functools
import json
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rehearsal.cloud import Attributes, Cloud
from rehearsal.terraform import bindings, consistency, failures, planning, schemas, sdk_configuration, values
from rehearsal.terraform.protocol_messages import MESSAGES
from rehearsal.terraform.resource_type import Client, DataSource, Place, Refusal, ResourceType
from rehearsal.terraform.schemas import Block
from rehearsal.terraform.values import Value
from vocabulary.resource_types import missing_facts, provider_facts

ERROR, WARNING = 1, 2


@dataclass(frozen=True, kw_only=True)
class Schemas:
    """The blocks that one provider serves."""

    provider: Block
    resources: Mapping[str, Block]
    sources: Mapping[str, Block]


def served(blocks: Mapping[str, Block]) -> Schemas:
    """Sort what `bindings.read` gave into the provider's own block, resources and data sources."""
    provider = blocks[bindings.PROVIDER]
    return Schemas(
        provider=Block(attributes={k: v for k, v in provider.attributes.items() if k != "id"}, blocks=provider.blocks),
        resources={
            name: block for name, block in blocks.items() if not name.startswith((bindings.DATA, bindings.PROVIDER))
        },
        sources={
            name.removeprefix(bindings.DATA): block for name, block in blocks.items() if name.startswith(bindings.DATA)
        },
    )


class Provider:
    """Answers Terraform's calls; a method a call, named after it. `connection` tells apart the Terraforms and aliases
    that call. `account` is the service account that all of them act as.
    """

    def __init__(
        self,
        *,
        cloud: Cloud,
        place: Place,
        schemas_: Schemas,
        resource_types: Mapping[str, ResourceType],
        sources: Mapping[str, DataSource],
        account: str = "",
    ) -> None:
        self.cloud = cloud
        self.place = place
        self.schemas = schemas_
        self.resource_types = resource_types
        self.sources = sources
        self.account = account
        self._settings: dict[str, Attributes] = {}
        self._lock = threading.Lock()

    def get_provider_schema(self, request: Any, connection: str) -> Any:
        return self._schema_message

    @functools.cached_property
    def _schema_message(self) -> Any:
        return MESSAGES["GetProviderSchemaResponse"](
            provider=schemas.to_message(self.schemas.provider),
            resource_schemas={
                name: schemas.to_message(
                    block, version=provider_facts(name).version, sensitive=provider_facts(name).sensitive
                )
                for name, block in self.schemas.resources.items()
            },
            data_source_schemas={name: schemas.to_message(block) for name, block in self.schemas.sources.items()},
            server_capabilities=MESSAGES["ServerCapabilities"](plan_destroy=True),
        )

    def configure_provider(self, request: Any, connection: str) -> Any:
        with self._lock:
            self._settings[connection] = values.decode(request.config.msgpack, self.schemas.provider.type_)
        return MESSAGES["ConfigureProviderResponse"]()

    def upgrade_resource_state(self, request: Any, connection: str) -> Any:
        """Every state is of the version that the real provider has now."""
        block = self.schemas.resources[request.type_name]
        known = {*block.attributes, *block.blocks}
        state = {name: value for name, value in json.loads(request.raw_state.json).items() if name in known}
        return MESSAGES["UpgradeResourceStateResponse"](
            upgraded_state=MESSAGES["DynamicValue"](json=json.dumps(state).encode())
        )

    def read_resource(self, request: Any, connection: str) -> Any:
        def read(client: Client, kind: ResourceType, block: Block) -> Any:
            state = _decode(request.current_state, block)
            live = kind.read(client, block, state)
            # Equal but for the order in a set: give back what Terraform has, or it would see a change.
            new = state if live is not None and planning.same(block, live, state) else live
            return MESSAGES["ReadResourceResponse"](new_state=_encode(new, block))

        return self._answer("ReadResourceResponse", request, connection, read)

    def plan_resource_change(self, request: Any, connection: str) -> Any:
        def plan(client: Client, kind: ResourceType, block: Block) -> Any:
            proposed = _decode(request.proposed_new_state, block)
            if proposed is None:
                return MESSAGES["PlanResourceChangeResponse"](planned_state=_encode(None, block))
            prior, config = _decode(request.prior_state, block), _decode(request.config, block)
            planned, replaced = self.plan(client, kind, block, prior, proposed, config)
            return MESSAGES["PlanResourceChangeResponse"](
                planned_state=_encode(planned, block),
                requires_replace=[path_message(path) for path in replaced],
                legacy_type_system=provider_facts(kind.type_).sdk,
            )

        return self._answer("PlanResourceChangeResponse", request, connection, plan)

    def plan(
        self,
        client: Client,
        kind: ResourceType,
        block: Block,
        prior: Attributes | None,
        proposed: Attributes,
        config: Attributes,
    ) -> tuple[Attributes, list[planning.Path]]:
        """The planned value and the paths that force replacement.

        Terraform lets the SDK's providers plan and answer what they like; a mistake of this one raises here.
        """
        facts = provider_facts(kind.type_)
        if facts.sdk:
            proposed, config = (sdk_configuration.completed(block, value, prior, facts) for value in (proposed, config))
        planned = kind.plan(client, block, prior, planning.fill_unknown(block, proposed, prior))
        consistency.check_plan(block, config, planned)
        if prior is None:
            return planned, []
        if planning.same(block, planned, prior):
            return prior, []
        if missing := missing_facts(kind.type_):
            raise Refusal(f"The rehearsal does not know what a change of {kind.type_} replaces", "\n".join(missing))
        leaves, counts = facts.replaces, facts.count_replaces
        by_schema = planning.replacements(block, prior, planned, leaves=leaves, counts=counts)
        return planned, [*by_schema, *kind.forces(prior, planned)]

    def create(self, client: Client, kind: ResourceType, block: Block, planned: Attributes) -> Attributes:
        """Create it."""
        state = kind.create(client, block, planned)
        consistency.check_result(block, planned, state)
        return state

    def update(
        self, client: Client, kind: ResourceType, block: Block, prior: Attributes, planned: Attributes
    ) -> Attributes:
        """Change it in place. What the real provider never sends stays as it was, and is planned again next time."""
        sent, kept = planning.without(block, prior, planned, provider_facts(kind.type_).never_sent)
        if kept:
            paths = ", ".join(dict.fromkeys(".".join(step for step in path if isinstance(step, str)) for path in kept))
            client.warn(
                f"{kind.type_}: the provider plans a change of {paths} in place and never sends it; every plan will"
                " show it again. Replace the resource instead."
            )
        state = kind.update(client, block, prior, sent)
        consistency.check_result(block, sent, state)
        return state

    def apply_resource_change(self, request: Any, connection: str) -> Any:
        def apply(client: Client, kind: ResourceType, block: Block) -> Any:
            prior, planned = _decode(request.prior_state, block), _decode(request.planned_state, block)
            with failures.around(self.cloud, request.type_name):
                if planned is None:
                    kind.delete(client, block, prior)
                    new = None
                elif prior is None:
                    new = self.create(client, kind, block, planned)
                else:
                    new = self.update(client, kind, block, prior, planned)
            return MESSAGES["ApplyResourceChangeResponse"](
                new_state=_encode(new, block), legacy_type_system=provider_facts(kind.type_).sdk
            )

        return self._answer("ApplyResourceChangeResponse", request, connection, apply)

    def import_resource_state(self, request: Any, connection: str) -> Any:
        def find(client: Client, kind: ResourceType, block: Block) -> Any:
            state = _encode(self.imported(client, kind, block, request.id), block)
            imported = MESSAGES["ImportedResource"](type_name=request.type_name, state=state)
            return MESSAGES["ImportResourceStateResponse"](imported_resources=[imported])

        return self._answer("ImportResourceStateResponse", request, connection, find)

    def imported(self, client: Client, kind: ResourceType, block: Block, id_: str) -> Attributes:
        """The state of what has this id, as far as the id says; Terraform reads the rest."""
        known = {*block.attributes, *block.blocks}
        empty: Attributes = {name: None if nested.nesting == "single" else [] for name, nested in block.blocks.items()}
        return empty | {name: value for name, value in kind.find(client, id_).items() if name in known}

    def read_data_source(self, request: Any, connection: str) -> Any:
        block = self.schemas.sources[request.type_name]
        try:
            config = _decode(request.config, block)
            result = self.sources[request.type_name].read(self._client(connection, []), config)
            return MESSAGES["ReadDataSourceResponse"](state=_encode(result, block))
        except Refusal as refusal:
            return MESSAGES["ReadDataSourceResponse"](diagnostics=[_diagnostic(refusal.message, refusal.detail)])

    def _answer(
        self, response: str, request: Any, connection: str, act: Callable[[Client, ResourceType, Block], Any]
    ) -> Any:
        """The answer of `act`, or its refusal; on refusal an apply keeps what there was."""
        warnings: list[str] = []
        client = self._client(connection, warnings)
        block = self.schemas.resources[request.type_name]
        try:
            answer = act(client, self.resource_types[request.type_name], block)
        except Refusal as refusal:
            answer = MESSAGES[response](diagnostics=[_diagnostic(refusal.message, refusal.detail)])
            if response == "ApplyResourceChangeResponse":
                left = request.prior_state if refusal.left is None else _encode(refusal.left, block)
                answer.new_state.CopyFrom(left)
        except Exception:
            words = f"The rehearsal itself failed on {request.type_name}"
            answer = MESSAGES[response](diagnostics=[_diagnostic(words, traceback.format_exc())])
            if response == "ApplyResourceChangeResponse":
                answer.new_state.CopyFrom(request.prior_state)
        answer.diagnostics.extend(_diagnostic(warning, severity=WARNING) for warning in warnings)
        return answer

    def _client(self, connection: str, warnings: list[str]) -> Client:
        with self._lock:
            settings = self._settings.get(connection, {})
        return Client(cloud=self.cloud, settings=settings, account=self.account, place=self.place, warn=warnings.append)


def _decode(message: Any, block: Block) -> Value:
    return values.decode(message.msgpack, block.type_) if message.msgpack else None


def _encode(value: Value, block: Block) -> Any:
    return MESSAGES["DynamicValue"](msgpack=values.encode(value, block.type_))


def _diagnostic(summary: str, detail: str = "", *, severity: int = ERROR) -> Any:
    return MESSAGES["Diagnostic"](severity=severity, summary=summary, detail=detail)


def path_message(path: planning.Path) -> Any:
    """A path as Terraform takes it."""
    steps = [
        MESSAGES["Step"](element_key_int=step) if isinstance(step, int) else MESSAGES["Step"](attribute_name=step)
        for step in path
    ]
    return MESSAGES["AttributePath"](steps=steps)
