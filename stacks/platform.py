"""What runs in the cluster for every job: JobSet, Kueue, the teams, and the gate that proves the webhooks answer."""

from __future__ import annotations

import json
from typing import Any

from cdktf import ITerraformDependable
from cdktf_cdktf_provider_google.data_google_project import DataGoogleProject
from cdktf_cdktf_provider_helm.release import Release
from cdktf_cdktf_provider_kubernetes.manifest import Manifest, ManifestFieldManager
from constructs import Construct

from environment import Environment
from environment.names import JOBSET_NAMESPACE, KUEUE_NAMESPACE
from stacks.access import Access
from stacks.base import ClusterUser
from stacks.charts import LocalChart
from stacks.drain import Drain
from stacks.plan_access import PlanAccess
from stacks.teams import Team
from stacks.xpk import XpkAccess
from vocabulary.keys import (
    ADMITTED_POD_LABEL,
    CPU_GROUP,
    POOL_GROUP_LABEL,
    TEAM_ACCOUNT,
    TEAM_LABEL,
    UNCOUNTED_PREFIXES,
)

JOBSET_VERSION = "0.12.0"
KUEUE_VERSION = "0.19.2"
UPSTREAM_CHARTS = "oci://registry.k8s.io"

ON_CPU_NODES = {POOL_GROUP_LABEL: CPU_GROUP}  # where there is a CPU pool

# How long an admitted job may take until all its pods are ready, before its slices go to the next in the queue: longer
# than pulling a training image on every host; than creating a slice, where that is done on demand; and than Google's
# Dynamic Workload Scheduler lets a job wait, where it is used. One value for the whole cluster, and it cannot be off.
#
# recoveryTimeout, how long a job that was running may be without a pod that it lost, is never the week: Kueue would
# take the value of timeout for it, and the job would hold its slices idle for as long.
PODS_READY_TIMEOUT = "30m"
PODS_READY_TIMEOUT_AUTOSCALED = "2h"
PODS_READY_TIMEOUT_SCHEDULED = "168h"

# How long the webhooks of a ready Kueue may still not answer.
GATE_LIMIT_SECONDS = 300

# Kueue's webhooks refuse everything of a kind they watch while Kueue is down, so only the kinds that train are listed.
FRAMEWORKS = ["batch/job", "jobset.x-k8s.io/jobset", "ray.io/rayjob", "ray.io/raycluster"]

# Kueue's own two: a preemption may not leave the owner of the slices with more than its share.
FAIR_STRATEGIES = ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]


class Platform(ClusterUser):
    """JobSet before Kueue, teams after both: their jobs carry finalizers that only a living Kueue removes."""

    def __init__(self, scope: Construct, id_: str, *, environment: Environment) -> None:
        super().__init__(scope, id_, environment=environment)
        jobset = self._jobset()
        kueue = self._kueue(after=jobset)
        policy = self._policy()
        project_number = environment.settings.project_number or DataGoogleProject(self, "project").number
        teams = [
            Team(
                self,
                f"team-{team.name}",
                environment=environment,
                team=team,
                project_number=project_number,
                depends_on=[jobset, kueue, *policy],
            )
            for team in environment.teams
        ]
        access = Access(self, "access", environment=environment, teams=teams)
        if environment.settings.xpk_compatibility:
            XpkAccess(self, "xpk", environment=environment, teams=teams)
        for team in teams:
            name = team.team.name
            self.output(
                f"service_account_{name}",
                f"{name}/{TEAM_ACCOUNT}",
                f"Namespace and Kubernetes service account that jobs of team {name} run as",
            )
            self._drain(team, access)
        if environment.settings.build_repository:
            PlanAccess(self, "plan-access", environment=environment, depends_on=[jobset, kueue])
        LocalChart(
            self,
            "gate",
            environment=environment,
            chart="gate",
            namespace=KUEUE_NAMESPACE,
            # With the versions in its values, the gate proves an upgrade too.
            values={
                "teamNamespace": environment.teams[0].name,
                "limitSeconds": GATE_LIMIT_SECONDS,
                "versions": {"jobset": JOBSET_VERSION, "kueue": KUEUE_VERSION},
            },
            timeout_seconds=GATE_LIMIT_SECONDS + 120,
            depends_on=[jobset, kueue, *(team.namespace for team in teams)],
        )

    def _drain(self, team: Team, access: Access) -> None:
        """On a deploy `platform` comes before `queues`: a team that is no longer described is drained here, before its
        namespace goes with all that runs in it.
        """
        name = team.team.name
        members = [access.members[name]] if name in access.members else []
        Drain(
            self,
            self.environment.names.eviction(name),
            environment=self.environment,
            team=name,
            goes_before=[*team.needed_by_jobs, *members],
        )

    def _jobset(self) -> Release:
        return self._release(
            "jobset",
            version=JOBSET_VERSION,
            namespace=JOBSET_NAMESPACE,
            values={
                "controller": self._placed(),
                **self._image("jobset/jobset"),
            },
        )

    def _kueue(self, *, after: ITerraformDependable) -> Release:
        manager: dict[str, Any] = {
            "resources": {
                "requests": {"cpu": "500m", "memory": "1Gi"},
                "limits": {"cpu": "2", "memory": "4Gi"},
            },
            **self._image("kueue/kueue"),
        }
        return self._release(
            "kueue",
            version=KUEUE_VERSION,
            namespace=KUEUE_NAMESPACE,
            values={
                "controllerManager": {**self._placed(), "manager": manager},
                "managerConfig": {
                    "controllerManagerConfigYaml": json.dumps(_kueue_configuration(self.environment), indent=2)
                },
            },
            depends_on=[after],
        )

    def _release(
        self,
        name: str,
        *,
        version: str,
        namespace: str,
        values: dict[str, Any],
        depends_on: list[ITerraformDependable] | None = None,
    ) -> Release:
        return Release(
            self,
            name,
            name=name,
            repository=f"{self.environment.settings.chart_repository or UPSTREAM_CHARTS}/{name}/charts",
            chart=name,
            version=version,
            namespace=namespace,
            create_namespace=True,
            wait=True,
            timeout=900,
            values=[json.dumps(values, indent=2)],
            depends_on=depends_on,
        )

    def _placed(self) -> dict[str, Any]:
        """The values that keep a chart's pods off TPU nodes; none on Autopilot, which makes nodes for them."""
        return {} if self.environment.settings.autopilot else {"nodeSelector": ON_CPU_NODES}

    def _image(self, image: str) -> dict[str, Any]:
        """The values that make a chart pull from IMAGE_REGISTRY; none when it is not set, for the chart knows its
        image.
        """
        registry = self.environment.settings.image_registry
        return {"image": {"repository": f"{registry}/{image}"}} if registry else {}

    def _policy(self) -> list[Manifest]:
        """Nobody goes round the queue: in team namespaces a pod with TPUs must have been admitted by Kueue.

        GKE gives plain Pods the TPU toleration by itself, and one of them on a host would break a slice. Kueue labels
        the pods it admits.
        """
        name = "tpu-pods-only-through-kueue"
        policy = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {
                    "resourceRules": [
                        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                    ]
                },
                "variables": [
                    {
                        "name": "containers",
                        "expression": "object.spec.containers + object.spec.?initContainers.orValue([])",
                    }
                ],
                "validations": [
                    {
                        "expression": "!variables.containers.exists(c,"
                        " 'google.com/tpu' in c.?resources.?limits.orValue({}))"
                        f" || '{ADMITTED_POD_LABEL}' in object.metadata.?labels.orValue({{}})",
                        "message": "pods that ask for google.com/tpu must come from a job that Kueue admitted:"
                        " submit a Job, JobSet, RayJob or RayCluster instead",
                    }
                ],
            },
        }
        binding = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {
                "policyName": name,
                "validationActions": ["Deny"],
                "matchResources": {
                    "namespaceSelector": {"matchExpressions": [{"key": TEAM_LABEL, "operator": "Exists"}]}
                },
            },
        }
        owned = ManifestFieldManager(name="tpuenv", force_conflicts=True)
        rule = Manifest(self, "tpu-policy", manifest=policy, field_manager=owned)
        return [rule, Manifest(self, "tpu-policy-binding", manifest=binding, field_manager=owned, depends_on=[rule])]


def _kueue_configuration(environment: Environment) -> dict[str, Any]:
    """Kueue's configuration file, `config.kueue.x-k8s.io/v1beta2`; the chart replaces it as a whole, so it is whole."""
    fair_sharing = {"fairSharing": {"preemptionStrategies": FAIR_STRATEGIES}} if environment.fair_sharing else {}
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": ":8081"},
        "metrics": {"bindAddress": ":8443", "enableClusterQueueResources": True},
        "webhook": {"port": 9443},
        "leaderElection": {"leaderElect": True, "resourceName": "c1f6bfd2.kueue.x-k8s.io"},
        "controller": {
            "groupKindConcurrency": {
                "Job.batch": 5,
                "Workload.kueue.x-k8s.io": 10,
                "LocalQueue.kueue.x-k8s.io": 5,
                "ClusterQueue.kueue.x-k8s.io": 5,
                "ResourceFlavor.kueue.x-k8s.io": 1,
            }
        },
        "manageJobsWithoutQueueName": True,
        "managedJobsNamespaceSelector": {"matchExpressions": [{"key": TEAM_LABEL, "operator": "Exists"}]},
        "waitForPodsReady": _wait_for_pods_ready(environment),
        "integrations": {"frameworks": FRAMEWORKS},
        "resources": {"excludeResourcePrefixes": list(UNCOUNTED_PREFIXES)},
        **fair_sharing,
    }


def _wait_for_pods_ready(environment: Environment) -> dict[str, str]:
    scheduled = any(group.capacity.comes_and_goes for group in environment.groups)
    autoscaled = scheduled or any(group.autoscaled for group in environment.groups)
    recovery = PODS_READY_TIMEOUT_AUTOSCALED if autoscaled else PODS_READY_TIMEOUT
    return {"timeout": PODS_READY_TIMEOUT_SCHEDULED if scheduled else recovery, "recoveryTimeout": recovery}
