"""The states of what was deployed in this process, written into the fake bucket as Terraform writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rehearsal.terraform.values import Dynamic
from tests.rehearsal.deployed import stacks_in
from tests.rehearsal.fake import FakeCloud
from tests.synthesis import read_stack


def write_states(fake: FakeCloud, output: Path) -> str:
    """Of every stack in `output`; the bucket."""
    bucket = ""
    for stack in stacks_in(output):
        described = read_stack(output, stack)
        backend = described["terraform"]["backend"]["gcs"]
        bucket = backend["bucket"]
        resources = [
            {"type": type_, "name": name, "mode": "managed", "instances": [{"attributes": _state(fake, type_, name)}]}
            for type_, named in sorted(described["resource"].items())
            for name in sorted(named)
        ]
        state = json.dumps({"outputs": described.get("output", {}), "resources": resources}, default=_written)
        fake.cloud.put_blob(bucket, f"{backend['prefix']}/default.tfstate", state.encode(), {}, keep_old=True)
    return bucket


def _state(fake: FakeCloud, type_: str, name: str) -> Any:
    return fake.resources[f"{type_}.{name}"].state


def _written(value: object) -> object:
    """What Terraform keeps of a value whose type the provider's schema leaves open."""
    assert isinstance(value, Dynamic), value
    return {"value": value.value, "type": "dynamic"}
