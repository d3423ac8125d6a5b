"""A release that does nothing while it is there, and whose uninstall drains a team's ClusterQueue for good."""

from __future__ import annotations

from collections.abc import Sequence

from cdktf import ITerraformDependable
from constructs import Construct

from environment import Environment
from environment.names import KUEUE_NAMESPACE
from stacks.charts import LocalChart

# How long admitted jobs may take to stop before a removal gives up, with the queue on hold.
DRAIN_LIMIT_SECONDS = 900


class Drain(LocalChart):
    """What `goes_before` stays until the jobs of the team are stopped: Terraform deletes in the reverse order.

    That is an edge of the graph: it holds for `cdktf destroy` as well as for a deploy that removes or renames the team.
    The quota leaves the cohort after the jobs, so that a queue that is created before this one is deleted does not give
    the same chips away again; a deploy that keeps the team restores both. It runs beside Kueue, for in the team's
    namespace its own Job would be queued. It succeeds where the queue does not exist.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        environment: Environment,
        team: str,
        goes_before: Sequence[ITerraformDependable],
    ) -> None:
        super().__init__(
            scope,
            name,
            environment=environment,
            chart="drain",
            namespace=KUEUE_NAMESPACE,
            values={"clusterQueue": team, "limitSeconds": DRAIN_LIMIT_SECONDS},
            timeout_seconds=DRAIN_LIMIT_SECONDS + 120,
            depends_on=goes_before,
        )
