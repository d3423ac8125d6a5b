"""Serve the fake providers to Terraform: gRPC on this machine, announced in TF_REATTACH_PROVIDERS.

TCP and not a unix socket: its peer address tells connections apart, so that two aliases of a provider, or two
Terraforms, keep their own settings; and a path with a long name does no harm.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

from rehearsal.terraform.fake_provider import Provider
from rehearsal.terraform.protocol_messages import CALLS, MESSAGES, PACKAGE

# Terraform and OpenTofu call the same providers by their own registry's name.
_SOURCES = ("registry.terraform.io/hashicorp", "registry.opentofu.org/hashicorp")

# Terraform walks its graph with ten at a time; hooks of charts may keep some busy.
_THREADS = 16


def serve(provider: Provider) -> tuple[grpc.Server, str]:
    """The running server and its address."""
    server = grpc.server(ThreadPoolExecutor(_THREADS), options=[("grpc.max_receive_message_length", -1)])
    handlers = {call: _handler(provider, call) for call in CALLS}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(f"{PACKAGE}.Provider", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, f"127.0.0.1:{port}"


def reattach(addresses: Mapping[str, str]) -> str:
    """The value of TF_REATTACH_PROVIDERS for providers by name.

    https://developer.hashicorp.com/terraform/plugin/debugging
    """
    return json.dumps(
        {
            f"{source}/{name}": {
                "Protocol": "grpc",
                "ProtocolVersion": 6,
                "Pid": os.getpid(),
                "Test": True,  # Terraform leaves the process alone when it ends
                "Addr": {"Network": "tcp", "String": address},
            }
            for name, address in addresses.items()
            for source in _SOURCES
        }
    )


def _handler(provider: Provider, call: str) -> Any:
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", call).lower()
    method: Callable[[Any, str], Any] = getattr(provider, name, None) or (
        lambda _request, _connection: MESSAGES[call + "Response"]()
    )
    return grpc.unary_unary_rpc_method_handler(
        lambda request, context: method(request, context.peer()),
        request_deserializer=MESSAGES[call + "Request"].FromString,
        response_serializer=lambda message: message.SerializeToString(),
    )
