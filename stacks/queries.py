"""The PromQL of dashboards and alerts: what of which metric is asked, of this environment alone.

Cloud Monitoring has Google's own metrics under PromQL names too: the first "/" of the name is ":", every other special
character "_"; labels of nodes begin with "metadata_user_". A metric of several kinds of resource takes the label
monitored_resource. https://cloud.google.com/monitoring/promql/promql-mapping

Every metric is a row of stacks/metrics.json, with the page that documents it. Kueue's are collected of each replica, so
that while one follows another there are two of each: the maximum counts once.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from environment import Environment
from environment.list_prices import Prices, list_prices
from vocabulary.keys import ACCELERATOR_LABEL, POOL_LABEL, TOPOLOGY_LABEL, TPU

METRICS = Path(__file__).with_name("metrics.json")
KUEUE = "kueue"  # the `from` of the metrics that the chart `metrics` has collected


def metrics() -> dict[str, dict[str, Any]]:
    """The rows of metrics.json by the metric's name in PromQL, which is without _bucket for a histogram."""
    rows: dict[str, dict[str, Any]] = json.loads(METRICS.read_text(encoding="utf-8"))
    return rows


def collected() -> str:
    """A regular expression for the series of Kueue that the queries need, and no others."""
    names = [name for name, row in metrics().items() if row["from"] == KUEUE]
    return "|".join(f"{name}(_bucket|_sum|_count)" if metrics()[name].get("histogram") else name for name in names)


def metadata_label(key: str) -> str:
    """A label of a node in PromQL."""
    return "metadata_user_" + re.sub("[^A-Za-z0-9_]", "_", key)


NODE_POOL = metadata_label(POOL_LABEL)
_QUOTA = ("cluster_queue", "flavor")  # what a quota is of: a team and a pool group

# kube-state-metrics has pods under their names: a label, and the expression whose brackets take its value of a name.
# JobSet and Kubernetes make them of the Job's name, the number of the pod and five characters; KubeRay of the worker
# group's, without a number, so that all slices of a group count as one.
_JOB = ("job_name", "(.+)-[0-9]+-[a-z0-9]{5}")
_RAY_GROUP = ("ray_group", "(.+)-worker-[a-z0-9]{5}")
ON_TPU_NODES = f'{metadata_label(ACCELERATOR_LABEL)}!=""'


class Queries:
    """The queries of one environment, in the order of the dashboards."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        cluster = environment.names.cluster
        self.of_cluster = f'cluster="{cluster}"'  # metrics of managed Prometheus
        self.of_google = f'cluster_name="{cluster}"'  # GKE's system metrics
        self.chips = f'{self.of_cluster},resource="{TPU}"'
        self.teams = "|".join(team.name for team in environment.teams)

    # TPUs

    def by_slice(self, metric: str, *, how: str = "avg") -> str:
        """A metric of the nodes, for each slice: its node pool."""
        return _named(f"{how} by ({NODE_POOL}) ({metric})", how, "slice", NODE_POOL, "(.+)")

    def by_group(self, metric: str) -> str:
        """A metric of the nodes, on average for each pool group, whose slices are all equal.

        On Autopilot the names of node pools are GKE's, so a group is there what its nodes are.
        """
        if self.environment.settings.autopilot:
            return f"avg by ({metadata_label(ACCELERATOR_LABEL)}, {metadata_label(TOPOLOGY_LABEL)}) ({metric})"
        return _named(f"avg by ({NODE_POOL}) ({metric})", "avg", "group", NODE_POOL, "(.+)-[0-9]+")

    def node(self, metric: str, *more: str) -> str:
        return f"{metric}{{{_matchers('k8s_node', self.of_google, *more)}}}"

    def duty_cycle(self) -> str:
        return self.node("kubernetes_io:node_accelerator_duty_cycle")

    def tensorcore(self) -> str:
        return self.node("kubernetes_io:node_accelerator_tensorcore_utilization")

    def memory_bandwidth(self) -> str:
        return self.node("kubernetes_io:node_accelerator_memory_bandwidth_utilization")

    def memory_used(self) -> str:
        return self.by_slice(self.node("kubernetes_io:node_accelerator_memory_used"), how="sum")

    def memory_total(self) -> str:
        return self.by_slice(self.node("kubernetes_io:node_accelerator_memory_total"), how="sum")

    def network(self, direction: str) -> str:
        """Bytes a second of all hosts of a slice; `direction` is sent or received."""
        metric = self.node(f"kubernetes_io:node_network_{direction}_bytes_count", ON_TPU_NODES)
        return self.by_slice(f"rate({metric}[5m])", how="sum")

    def between_slices(self, metric: str) -> str:
        """The 99th percentile of a latency of multislice training, in microseconds, by team."""
        metric = f"kubernetes_io:container_multislice_network_{metric}_latencies_bucket"
        series = f"{metric}{{{_matchers('k8s_container', self.of_google)}}}"
        return f"histogram_quantile(0.99, sum by (le, namespace_name) (rate({series}[5m])))"

    def available(self) -> str:
        return f"min by (node_pool_name) ({self._node_pool('kubernetes_io:node_pool_multi_host_available')})"

    def interruptions(self) -> str:
        series = self._node_pool("kubernetes_io:node_pool_interruption_count")
        return f"sum by (node_pool_name, interruption_reason) (sum_over_time({series}[10m]))"

    def _node_pool(self, metric: str) -> str:
        return f"{metric}{{{_matchers('k8s_node_pool', self.of_google)}}}"

    def nat(self, metric: str, *more: str) -> str:
        gateway = f'gateway_name="{self.environment.names.nat}"'
        return f"router_googleapis_com:nat_{metric}{{{_matchers('nat_gateway', gateway, *more)}}}"

    # Queues and jobs

    def pending(self) -> str:
        """The jobs that wait, by team."""
        return f"sum by (cluster_queue) (max by (cluster_queue, status) (kueue_pending_workloads{{{self.of_cluster}}}))"

    def admitted(self) -> str:
        return f"max by (cluster_queue) (kueue_admitted_active_workloads{{{self.of_cluster}}})"

    def waiting(self, metric: str, quantile: str) -> str:
        """Of the jobs of the last hour, how many seconds that share of them waited at most, by team."""
        series = f"{metric}_bucket{{{self.of_cluster}}}"
        return f"histogram_quantile({quantile}, sum by (le, cluster_queue) (rate({series}[1h])))"

    def used(self, *by: str) -> str:
        return self._chips("kueue_cluster_queue_resource_usage", *by)

    def quota(self, *by: str) -> str:
        return self._chips("kueue_cluster_queue_nominal_quota", *by)

    def waiting_chips(self) -> str:
        return f"max by (cluster_queue) (kueue_cluster_queue_resource_pending{{{self.chips}}})"

    def borrowed(self) -> str:
        """Chips beyond a team's own quota, in any pool group."""
        used, quota = self.used("cluster_queue", "flavor"), self.quota("cluster_queue", "flavor")
        return f"sum by (cluster_queue) (clamp_min({used} - {quota}, 0))"

    def free(self) -> str:
        """Chips of a team's own quota that nobody of the team uses, in the pool group with the fewest.

        Kueue does not say for which pool group a job waits: so many chips there are in any.
        """
        used, quota = self.used("cluster_queue", "flavor"), self.quota("cluster_queue", "flavor")
        return f"min by (cluster_queue) ({quota} - {used})"

    def _chips(self, metric: str, *by: str, of: str = "") -> str:
        flavor = f',flavor="{of}"' if of else ""
        once = f"max by ({', '.join(_QUOTA)}) ({metric}{{{self.chips}{flavor}}})"
        return once if by == _QUOTA else f"sum by ({', '.join(by)}) ({once})"

    def preempted(self) -> str:
        series = f"kueue_preempted_workloads_total{{{self.of_cluster}}}"
        return f"sum by (preempting_cluster_queue, reason) (increase({series}[1h]))"

    def evicted(self) -> str:
        series = f"kueue_evicted_workloads_total{{{self.of_cluster}}}"
        return f"sum by (cluster_queue, reason) (increase({series}[1h]))"

    def restarts(self) -> str:
        return f"max by (namespace, jobset_name) (kube_jobset_restarts{{{self.of_cluster}}})"

    def restarts_of_an_hour(self) -> str:
        series = f"kube_jobset_restarts{{{self.of_cluster}}}"
        return f"max by (namespace, jobset_name) (max_over_time({series}[1h]) - min_over_time({series}[1h]))"

    def replicas(self, which: str) -> str:
        """Slices of the JobSets that are `specified` or `ready`, by team."""
        return f"sum by (namespace) (kube_jobset_{which}_replicas{{{self.of_cluster}}})"

    def goodput(self, which: str) -> str:
        """GKE's `scheduling` or `proxy_runtime` goodput of a JobSet, from 0 to 1."""
        matchers = _matchers("k8s_entity", 'entity_type="jobset"', self.of_google)
        return f"avg by (entity_namespace, entity_name) (kubernetes_io:jobset_{which}_goodput{{{matchers}}})"

    def measured_goodput(self) -> str:
        """The share of a run's time that was spent on steps that count, as the run itself reports it."""
        good, all_ = self._workload("goodput_time"), self._workload("total_elapsed_time")
        return f"sum by (workload_id) ({good}) / max by (workload_id) ({all_})"

    def badput(self) -> str:
        return f"sum by (workload_id, badput_source) ({self._workload('badput_time')})"

    def _workload(self, metric: str) -> str:
        name = "compute.googleapis.com/Workload"
        return f"compute_googleapis_com:workload_{metric}{{{_matchers(name)}}}"

    def running_chips(self, *by: str) -> str:
        """Chips of the containers that run, by labels of Google's metric of them."""
        teams = f'namespace_name=~"{self.teams}"'
        matchers = _matchers("k8s_container", self.of_google, f'resource_name="{TPU}"', teams)
        return f"sum by ({', '.join(by)}) (kubernetes_io:container_accelerator_request{{{matchers}}})"

    def held_without_pods(self, *flavors: str) -> str:
        """Chips that a team has and that no container of it runs on, of these pool groups or of all.

        The metric of the containers does not say of which pool group a chip is, so every one of the team counts. Where
        it is missing although pods of jobs run, nothing is known of the team, and it has no series.
        """
        of = f',flavor=~"{"|".join(flavors)}"' if flavors else ""
        series = f"kueue_cluster_queue_resource_usage{{{self.chips}{of}}}"
        used = f"sum by (cluster_queue) (max by ({', '.join(_QUOTA)}) ({series}))"
        running = self.running_chips("namespace_name")
        running = f"sum by (cluster_queue) ({_as_label('cluster_queue', 'namespace_name', '(.+)', running)})"
        pods = self._pods(f"{_JOB[1]}|{_RAY_GROUP[1]}", 'phase="Running"')
        pods = f"sum by (cluster_queue) ({_as_label('cluster_queue', 'namespace', '(.+)', pods)}) > 0"
        return f"clamp_min({used} - ({running} or {used} * 0 unless {pods}), 0)"

    def _pods(self, names: str, phases: str) -> str:
        """Of the teams: 1 for a pod in one of these phases."""
        return f'kube_pod_status_phase{{{self.of_cluster},namespace=~"{self.teams}",pod=~"{names}",{phases}}}'

    def partly_ready(self) -> str:
        """Slices, or other Jobs of several pods, of whose pods some run and others do not."""
        return self._partly_ready(*_JOB)

    def partly_ready_ray(self) -> str:
        """Worker groups of Ray clusters, of whose pods some run and others do not; never the head, on the CPU pool."""
        return self._partly_ready(*_RAY_GROUP)

    def idle_in_part(self) -> dict[str, str]:
        """Chips of the pods that run and wait for the rest: of slices, and of worker groups of Ray, by a word."""
        return {"slice": self._idle_in_part(*_JOB), "Ray": self._idle_in_part(*_RAY_GROUP)}

    def _idle_in_part(self, label: str, pods: str) -> str:
        chips = _as_label(label, "pod_name", pods, self.running_chips("namespace_name", "pod_name"))
        chips = _as_label("namespace", "namespace_name", "(.+)", chips)
        return f"sum by (namespace, {label}) ({chips}) and on (namespace, {label}) ({self._partly_ready(label, pods)})"

    def _partly_ready(self, label: str, pods: str) -> str:
        def counted(phases: str) -> str:
            return f"sum by (namespace, {label}) ({_as_label(label, 'pod', pods, self._pods(pods, phases))})"

        up, all_ = counted('phase="Running"'), counted('phase=~"Pending|Running"')
        return f"({up} / {all_} > 0) < 1"

    def cost(self) -> str:
        """USD an hour of the chips that a team uses, at their list prices; "" where no price is known."""
        terms = [
            f"{self._chips('kueue_cluster_queue_resource_usage', *_QUOTA, of=name)} * {price}"
            for name, price in self.prices()[0].items()
        ]
        return f"sum by (cluster_queue) ({' or '.join(terms)})" if terms else ""

    def prices(self) -> tuple[dict[str, str], list[str], Prices]:
        """USD of a chip and hour by pool group, the pool groups without a list price, and the prices as read."""
        prices, region = Prices(list_prices()), self.environment.settings.region
        known: dict[str, str] = {}
        unknown = []
        for group in self.environment.groups:
            price = prices.usd("chip_hour", group.slice.machine_type.series, group.capacity.billed_as, region)
            if price is None:
                unknown.append(group.name)
            else:
                known[group.name] = str(price)
        return known, unknown, prices


def _matchers(resource: str, *others: str) -> str:
    return ",".join([f'monitored_resource="{resource}"', *others])


def _named(query: str, how: str, label: str, source: str, pattern: str) -> str:
    """A query grouped by `source`, grouped by what `pattern` takes of it, under a short name."""
    return f"{how} by ({label}) ({_as_label(label, source, pattern, query)})"


def _as_label(label: str, source: str, pattern: str, query: str) -> str:
    """A query with one more label: what the brackets of `pattern` take of the label `source`."""
    return f'label_replace({query}, "{label}", "$1", "{source}", "{pattern}")'
