"""Whether a job would start at once on a free slice, or stop another job, or wait."""

from __future__ import annotations

from collections.abc import Iterator

from admission import Explanation, explain
from tpuenv.kubernetes.client import Cluster
from tpuenv.kubernetes.objects import Object, name_of, status_of

# More than any WorkloadPriorityClass has: within its own queue nothing is stopped.
_HIGHEST = 2**31 - 1


def explained(cluster: Cluster, manifest: Object, *, team: str) -> Explanation:
    """As `tpuenv check`, on the queues as they are, with what their jobs use. Raises Failed.

    Members of a team read all queues, and not the jobs of others: of those it takes what the queues say.
    """
    kinds = ("ClusterQueue", "ResourceFlavor", "WorkloadPriorityClass")
    objects = [item for kind in kinds for item in cluster.all(kind)]
    queues = [item for item in objects if item["kind"] == "ClusterQueue"]
    return explain([*objects, *cluster.all("LocalQueue", team), *_in_use(queues)], manifest, namespace=team)


def _in_use(queues: list[Object]) -> Iterator[Object]:
    """One Workload for each flavor of each queue, with all that its jobs have.

    https://kueue.sigs.k8s.io/docs/reference/kueue.v1beta2/#kueue-x-k8s-io-v1beta2-FlavorUsage
    """
    for queue in queues:
        for flavor in status_of(queue).get("flavorsReservation") or []:
            used = {str(item["name"]): str(item.get("total") or 0) for item in flavor.get("resources") or []}
            yield {
                "kind": "Workload",
                "metadata": {"name": f"jobs-on-{flavor['name']}", "namespace": name_of(queue)},
                "spec": {"priority": _HIGHEST},
                "status": {
                    "admission": {
                        "clusterQueue": name_of(queue),
                        "podSetAssignments": [
                            {
                                "name": "jobs",
                                "count": 1,
                                "flavors": dict.fromkeys(used, flavor["name"]),
                                "resourceUsage": used,
                            }
                        ],
                    }
                },
            }
