"""Terraform ready to plan a stack, also for somebody who may read states and not make one, as the plan identity.

In a stack that has none yet, `terraform init` writes an empty one. Who may not is as well served by an empty state in
a folder of its own, and leaves the bucket as it is.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from environment import Environment
from tpuenv.review.plans import NotPlanned, initialize
from tpuenv.terraform.stack import Stack, Terraform

# Terraform merges it over the stack's own backend. https://developer.hashicorp.com/terraform/language/files/override
_OVERRIDE: dict[str, object] = {"terraform": {"backend": {"local": {}}}}


# What Cloud Storage refuses to whoever may only read.
_REFUSED = "storage.objects.create"


@contextmanager
def ready(stack: Stack, environment: Environment) -> Iterator[Terraform]:
    """Raises tpuenv.review.plans.NotPlanned."""
    try:
        terraform = initialize(stack)
    except NotPlanned as failure:
        if _REFUSED not in failure.output or _has_state(stack, environment):
            raise
    else:
        yield terraform
        return
    with tempfile.TemporaryDirectory(prefix="tpuenv-") as folder:
        yield initialize(_without_state(stack, Path(folder)))


def _has_state(stack: Stack, environment: Environment) -> bool:
    # Not before it matters: Google's libraries take a second to load.
    from tpuenv.google.clients import connect
    from tpuenv.state import versions

    return versions.exists(connect(environment.settings.project_id), environment.names, stack.name)


def _without_state(stack: Stack, folder: Path) -> Stack:
    (folder / "cdk.tf.json").write_text(json.dumps(stack.configuration), encoding="utf-8")
    (folder / "backend_override.tf.json").write_text(json.dumps(_OVERRIDE), encoding="utf-8")
    if (stack.folder / "assets").exists():
        (folder / "assets").symlink_to((stack.folder / "assets").resolve())
    return Stack(name=stack.name, folder=folder, after=stack.after)
