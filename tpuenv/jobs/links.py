"""Where Google's console shows the environment and its jobs: dashboards, alerts, and the log of a job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import quote

from environment import Environment
from environment.names import KUEUE_NAMESPACE
from tpuenv.failure import Failed
from tpuenv.jobs.job import Job
from tpuenv.kubernetes.client import Cluster
from vocabulary.keys import LINKS
from vocabulary.printable import printable


def read_links(cluster: Cluster) -> Mapping[str, str]:
    """The addresses by what is there, as the stack `observability` writes them; {} where there are none, or they cannot
    be read at once: nobody needs them to go on.
    """
    try:
        written = cluster.with_little_patience().find("ConfigMap", KUEUE_NAMESPACE, LINKS) or {}
    except Failed:
        return {}
    data = written.get("data")
    if not isinstance(data, dict):
        return {}
    return {name.replace("-", " "): str(data[name]) for name in sorted(data, key=str.casefold)}


def log_link(environment: Environment, job: Job) -> str:
    """Where Cloud Logging has the lines of all pods of a job, also of those that are gone. Reading them takes
    roles/logging.viewer. https://cloud.google.com/logging/docs/view/logging-query-language
    """
    labels = {"cluster_name": environment.names.cluster, "namespace_name": job.team}
    terms = ['resource.type="k8s_container"', *(f'resource.labels.{key}="{value}"' for key, value in labels.items())]
    query = quote("\n".join([*terms, f'resource.labels.pod_name=~"^{job.name}-"']), safe="")
    return f"https://console.cloud.google.com/logs/query;query={query}?project={environment.settings.project_id}"


def link_lines(links: Mapping[str, str]) -> Iterator[str]:
    """A line for each."""
    yield from (printable(f"{name}: {link}") for name, link in links.items())
