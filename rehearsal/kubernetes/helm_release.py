"""`helm_release`: charts go in and out, their CRDs and webhooks with them, their hooks' programs really run.

Source of its behaviour: hashicorp/terraform-provider-helm 3.1.1 and Helm 3. Nothing is templated.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import yaml

from rehearsal import started_processes
from rehearsal.cloud import Attributes
from rehearsal.kubernetes import charts, controllers, kueue_configuration, server, warden, webhooks
from rehearsal.kubernetes.api import Api, merge
from rehearsal.kubernetes.charts import Chart
from rehearsal.kubernetes.cluster_access import CONFIG_MAP, SECRET, Authorized
from rehearsal.kubernetes.nodes import nodes
from rehearsal.kubernetes.provider_access import UNAUTHORIZED, cluster_api
from rehearsal.kubernetes.resources import CRD, JOBSET, NAMESPACE, crd
from rehearsal.kubernetes.status import Status
from rehearsal.terraform import planning
from rehearsal.terraform.resource_type import Client, Refusal
from rehearsal.terraform.schemas import Block
from rehearsal.terraform.values import UNKNOWN, Unknown, is_known
from vocabulary.resource_types import provider_facts

KIND = "helm_release"

_DRIVERS = {"secret": SECRET, "configmap": CONFIG_MAP}
_NAME_LIMIT = 53  # https://helm.sh/docs/chart_template_guide/named_templates/
_LAST_LINES = 12  # of a failed program's output


class Release:
    type_ = KIND

    def forces(self, prior: Attributes, planned: Attributes) -> list[planning.Path]:
        return []

    def plan(self, client: Client, block: Block, prior: Attributes | None, planned: Attributes) -> Attributes:
        """The provider loads the chart at plan, so a chart that is not there is refused then."""
        out = dict(planned)
        for name, value in provider_facts(KIND).defaults.items():
            if isinstance(out.get(name), Unknown):
                out[name] = value
        if is_known(out["chart"]) and is_known(out.get("repository")):
            chart = _chart(client, out)
            out["version"] = chart.version if isinstance(out["version"], Unknown) else out["version"]
        if isinstance(out["description"], Unknown):
            out["description"] = None if prior is None else prior["description"]
        out |= {"status": "deployed", "manifest": None, "resources": None}
        if prior is not None and not planning.same(block, prior, out):
            out |= {"metadata": UNKNOWN, "id": UNKNOWN}
        return out

    def read(self, client: Client, block: Block, state: Attributes) -> Attributes | None:
        api = _api(client, "get", state)
        release = client.cloud.get(KIND, _key(api, state))
        return None if release is None else state | release["state"]

    def create(self, client: Client, block: Block, planned: Attributes) -> Attributes:
        api = _api(client, "create", planned)
        chart = _chart(client, planned)
        name, namespace = str(planned["name"]), str(planned["namespace"])
        if len(name) > _NAME_LIMIT:
            raise Refusal(f'invalid release name, must match regex and be at most {_NAME_LIMIT} long: "{name}"')
        if client.cloud.get(KIND, _key(api, planned)) is not None:
            raise Refusal("installation failed", "cannot re-use a name that is still in use")
        _namespace(api, namespace, create=planned["create_namespace"] is True)
        if chart.name == "kueue" and not api.exists(CRD, "", JOBSET[0].qualified):
            client.warn("Kueue is installed before JobSet: its webhooks refuse JobSet's own jobs until they answer")
        return self._deploy(client, api, chart, block, planned, revision=1)

    def update(self, client: Client, block: Block, prior: Attributes, planned: Attributes) -> Attributes:
        api = _api(client, "update", prior)
        release = client.cloud.get(KIND, _key(api, prior))
        if release is None:
            raise Refusal("Error upgrading chart", f'Upgrade failed: "{prior["name"]}" has no deployed releases')
        return self._deploy(client, api, _chart(client, planned), block, planned, revision=release["revision"] + 1)

    def delete(self, client: Client, block: Block, prior: Attributes) -> None:
        api = _api(client, "delete", prior)
        release = client.cloud.get(KIND, _key(api, prior))
        if release is None:
            return
        failed = "" if prior.get("disable_webhooks") else _run(client, api, release, "pre-delete")
        if failed:
            raise Refusal("Error uninstalling release", f"failed pre-delete: {failed}")
        with client.cloud.transaction():
            client.cloud.delete(KIND, _key(api, prior))
            _uninstall(api, release["chart"])

    def find(self, client: Client, id_: str) -> Attributes:
        """ "namespace/name". The real provider asks Helm for it at once."""
        namespace, _, name = id_.partition("/")
        values: Attributes = {"namespace": namespace, "name": name}
        if client.cloud.get(KIND, _key(_api(client, "get", values), values)) is None:
            raise Refusal("Error getting release", f"Unable to get Helm release {name}: release: not found")
        return {"id": name, "name": name, "namespace": namespace}

    def _deploy(
        self, client: Client, api: Api, chart: Chart, block: Block, planned: Attributes, *, revision: int
    ) -> Attributes:
        values = _values(chart, planned)
        failed = _install(api, chart, values, wait=planned["wait"] is not False)
        release = {"chart": chart.name, "programs": chart.programs, "values": values, "revision": revision}
        release |= {key: planned[key] for key in ("name", "namespace", "timeout")}
        event = "post-install" if revision == 1 else "post-upgrade"
        if not failed and not planned["disable_webhooks"]:
            failed = _run(client, api, release, event)
        state = planning.settle(block, planning.overlay(planned, _decided(chart, planned, values, revision)))
        state |= {"status": "failed"} if failed else {}
        kept = {key: state[key] for key in ("status", "version", "metadata")}
        client.cloud.put(KIND, _key(api, planned), release | {"state": kept})
        if failed:
            words = "installation failed" if revision == 1 else "Error upgrading chart"
            raise Refusal(words, failed, left=state if revision == 1 else None)
        return state


def _api(client: Client, verb: str, release: Attributes) -> Api:
    """Helm keeps its releases in objects of their namespace, Secrets if the provider names no other driver, and lists
    all of them to get one.

    https://helm.sh/docs/topics/advanced/#storage-backends
    """
    settings = client.settings.get("kubernetes") or {}
    if isinstance(settings, Unknown):
        raise Refusal("Kubernetes cluster unreachable: its address is known only after apply")
    try:
        api = cluster_api(client, settings)
    except Refusal as refusal:
        # Helm asks for the version first, and client-go has no words of the server for that.
        unknown = "the server has asked for the client to provide credentials"
        words = unknown if refusal.message == UNAUTHORIZED else refusal.message
        raise Refusal(f"Kubernetes cluster unreachable: {words}", refusal.detail) from refusal
    if isinstance(api, Authorized):
        for needed in dict.fromkeys(("list", verb)):
            api.authorize(needed, _DRIVERS[client.settings.get("helm_driver") or "secret"], str(release["namespace"]))
    return api


def _key(api: Api, values: Attributes) -> str:
    return f"{api.cluster}|{values['namespace']}|{values['name']}"


def _chart(client: Client, values: Attributes) -> Chart:
    version = values.get("version")
    return charts.load(
        client,
        chart=str(values["chart"]),
        repository=str(values.get("repository") or ""),
        version=version if isinstance(version, str) else "",
    )


def _namespace(api: Api, namespace: str, *, create: bool) -> None:
    """Helm creates a namespace only with create_namespace. https://helm.sh/docs/helm/helm_install/"""
    if api.exists(NAMESPACE, "", namespace):
        return
    if not create:
        raise Refusal("installation failed", f'create: failed to create: namespaces "{namespace}" not found')
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})


def _values(chart: Chart, planned: Attributes) -> dict[str, Any]:
    """The chart's values, then `values` in their order, then `set`."""
    out: Any = chart.values
    for text in planned.get("values") or []:
        try:
            out = merge(out, yaml.safe_load(text) or {})
        except yaml.YAMLError as error:
            raise Refusal("Error unmarshaling values", " ".join(str(error).split())) from error
    for item in planned.get("set") or []:
        value: Any = item["value"] if item.get("type") == "string" else yaml.safe_load(item["value"] or "")
        for part in reversed(str(item["name"]).split(".")):
            value = {part: value}
        out = merge(out, value)
    return dict(out)


def _install(api: Api, chart: Chart, values: dict[str, Any], *, wait: bool) -> str:
    """CRDs and webhooks of a published chart; why its pods do not become ready, or ""."""
    if not chart.installs:
        return ""
    with api.cloud.transaction():
        for resource in chart.installs:
            if not api.exists(CRD, "", resource.qualified):
                api.create(crd(resource))
        if not webhooks.installed(api, chart.name):
            webhooks.install(api, chart.name)
            controllers.reconcile(api)
    return _not_ready(api, chart, values) if wait else ""


def _not_ready(api: Api, chart: Chart, values: dict[str, Any]) -> str:
    """A Deployment whose pods find no node, or that crash, is never ready, and Helm waits until its timeout."""
    if chart.name == "kueue":
        text = (values.get("managerConfig") or {}).get("controllerManagerConfigYaml")
        wrong = kueue_configuration.problem(text) if isinstance(text, str) else ""
        if wrong:
            return f"context deadline exceeded: the manager of {chart.name} does not start: {wrong}"
    return _without_node(api, chart.name, values.get(chart.pods) or {})


def _without_node(api: Api, name: str, pods: dict[str, Any]) -> str:
    """Why the pods with this node selector and these tolerations do not start, or ""."""
    selector, tolerations = pods.get("nodeSelector") or {}, pods.get("tolerations") or []
    if warden.is_watched(api):
        refused = [words for _, words in warden.violations({"nodeSelector": selector, "tolerations": tolerations})]
        return f"context deadline exceeded: no pods of {name}: {refused[0]}" if refused else ""
    tolerated = {item["key"] for item in tolerations}
    pools = nodes(api.cloud, api.cluster)
    if not any(selector.items() <= node.labels.items() and tolerated.issuperset(node.taints) for node in pools):
        labels = ", ".join(f"{key}={value}" for key, value in selector.items()) or "any labels"
        taints = ", ".join(sorted(tolerated)) or "none"
        return (
            f"context deadline exceeded: the pods of {name} are pending: no node pool with {labels} whose taints they"
            f" tolerate ({taints})"
        )
    return ""


def _uninstall(api: Api, chart: str) -> None:
    """Kueue's CRDs are ordinary parts of its chart and go with it, and every object of them; JobSet's stays.

    https://helm.sh/docs/chart_best_practices/custom_resource_definitions/
    """
    webhooks.uninstall(api, chart)
    published = charts.published(chart)
    if published is None or published.keeps_crds:
        return
    for resource in published.installs:
        for item in api.all(resource):
            api.remove(item)
        try:
            api.remove(api.get(CRD, "", resource.qualified))
        except Status:
            continue


def _run(client: Client, api: Api, release: Attributes, event: str) -> str:
    """Run the chart's program for this event; its last words when it failed, or ""."""
    program = release["programs"].get(event)
    if program is None:
        return ""
    if pending := _without_node(api, release["name"], release["values"]):
        return pending
    environment = {
        "PATH": os.defpath,
        "VALUES": json.dumps(release["values"]),
        "RELEASE_NAMESPACE": str(release["namespace"]),
        "KUBERNETES_API": f"{client.place.address}{server.PREFIX}{api.cluster}",
    }
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as running:
        started_processes.record(client.place.processes, running.pid)
        try:
            output, _ = running.communicate(timeout=float(release["timeout"]))
        except subprocess.TimeoutExpired:
            running.kill()
            return f"{event} timed out after {release['timeout']} s: context deadline exceeded"
        finally:
            started_processes.forget(client.place.processes, running.pid)
    if running.returncode == 0:
        return ""
    lines = output.strip().splitlines()[-_LAST_LINES:]
    return "\n".join([f"job {release['name']} failed: BackoffLimitExceeded", *lines])


def _decided(chart: Chart, planned: Attributes, values: dict[str, Any], revision: int) -> Attributes:
    metadata = {
        "app_version": chart.app_version,
        "chart": chart.name,
        "first_deployed": 1767225600,
        "last_deployed": 1767225600,
        "name": planned["name"],
        "namespace": planned["namespace"],
        "notes": "",
        "revision": revision,
        "values": json.dumps(values),
        "version": chart.version,
    }
    return {"id": planned["name"], "version": chart.version, "metadata": metadata}


RESOURCE_TYPES = (Release(),)
