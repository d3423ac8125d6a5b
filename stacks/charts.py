"""The small local charts: programs that Helm runs in the cluster at the right moment."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cdktf import AssetType, ITerraformDependable, TerraformAsset, TerraformStack
from cdktf_cdktf_provider_helm.release import Release
from constructs import Construct

from environment import Environment
from vocabulary.keys import POOL_GROUP_LABEL, SYSTEM_GROUP, SYSTEM_TAINT
from vocabulary.sources import IMAGES

CHARTS = Path(__file__).parent.parent / "charts"

# Google's mirror of Docker Hub: nodes without a public address reach it through Private Google Access.
UPSTREAM_IMAGES = "mirror.gcr.io"


def on_system_nodes(environment: Environment) -> dict[str, Any]:
    """The values that put a chart's pods on the system pool; none on Autopilot, whose nodes no pod breaks into."""
    if environment.settings.autopilot:
        return {}
    toleration = {"key": SYSTEM_TAINT, "operator": "Equal", "value": "true", "effect": "NoSchedule"}
    return {"nodeSelector": {POOL_GROUP_LABEL: SYSTEM_GROUP}, "tolerations": [toleration]}


class LocalChart(Construct):
    """A release of `charts/{chart}`; its program, if it has one, reads `values` as JSON.

    The chart is copied beside the stack's JSON, under the hash of its content, so that a changed program is an upgrade
    and no path of this machine gets into the state.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        environment: Environment,
        chart: str,
        namespace: str,
        values: dict[str, Any],
        timeout_seconds: int,
        depends_on: Sequence[ITerraformDependable],
    ) -> None:
        super().__init__(scope, id_)
        registry = environment.settings.image_registry or UPSTREAM_IMAGES
        python, has_pods = IMAGES["python"], (CHARTS / chart / "files").is_dir()
        image = f"{registry}/{python.path}:{python.tag}"
        pods = {"image": image, **on_system_nodes(environment)} if has_pods else {}
        self.release = Release(
            self,
            "release",
            name=id_,
            chart=f"./{_asset(TerraformStack.of(self), chart).path}",
            namespace=namespace,
            values=[json.dumps({**pods, **values}, indent=2)],
            timeout=timeout_seconds,
            depends_on=list(depends_on),
        )


def _asset(stack: TerraformStack, chart: str) -> TerraformAsset:
    """The chart's copy in a stack: one for all of its releases there."""
    existing = stack.node.try_find_child(f"chart-{chart}")
    if isinstance(existing, TerraformAsset):
        return existing
    return TerraformAsset(stack, f"chart-{chart}", path=str(CHARTS / chart), type=AssetType.DIRECTORY)
