"""What runs in the cluster for every job: JobSet, Kueue, the teams, and the gate that proves the webhooks answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from cdktf import ITerraformDependable
from cdktf_cdktf_provider_google.data_google_project import DataGoogleProject
from cdktf_cdktf_provider_helm.release import Release
from constructs import Construct

from environment import CapacityMode, Environment
from environment.fleet.model import LONGEST_WAIT_HOURS
from environment.names import JOBSET_NAMESPACE, KUEUE_NAMESPACE
from stacks.access import Access
from stacks.base import ClusterUser
from stacks.charts import LocalChart, on_system_nodes
from stacks.controllers import confine_controllers, controller_namespace
from stacks.drain import Drain
from stacks.plan_access import PlanAccess
from stacks.policies import Policies
from stacks.teams import Team
from stacks.xpk import XpkAccess
from vocabulary.keys import (
    TEAM_LABEL,
    UNCOUNTED_PREFIXES,
)
from vocabulary.sources import CHARTS, IMAGES

# How long an admitted job may take until all its pods are ready, before its slices go to the next in the queue: longer
# than pulling a training image on every host; than creating a slice, where that is done on demand; and than Google's
# Dynamic Workload Scheduler lets pods wait, with flex-start. One value for the whole cluster, and it cannot be off. A
# job of a queued group is admitted when its machines are there, so its time begins only then (admittedNotReadyWorkload
# in Kueue 0.19.2).
#
# recoveryTimeout, how long a job that was running may be without a pod that it lost, is never the week: Kueue would
# take the value of timeout for it, and the job would hold its slices idle for as long.
PODS_READY_TIMEOUT = "30m"
PODS_READY_TIMEOUT_AUTOSCALED = "2h"
PODS_READY_TIMEOUT_FLEX_START = f"{LONGEST_WAIT_HOURS}h"

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
        policies = Policies(self, "policies")
        confine_controllers(self)
        project_number = environment.settings.project_number or DataGoogleProject(self, "project").number
        teams = [
            Team(
                self,
                f"team-{team.name}",
                environment=environment,
                team=team,
                project_number=project_number,
                depends_on=[jobset, kueue, *policies.objects],
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
                f"{name}/{environment.names.team_account}",
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
                "versions": {name: chart.version for name, chart in CHARTS.items()},
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
            namespace=JOBSET_NAMESPACE,
            values={
                "controller": on_system_nodes(self.environment),
                **self._image("jobset"),
            },
        )

    def _kueue(self, *, after: ITerraformDependable) -> Release:
        manager: dict[str, Any] = {
            "resources": {
                "requests": {"cpu": "500m", "memory": "1Gi"},
                "limits": {"cpu": "2", "memory": "4Gi"},
            },
            **self._image("kueue"),
        }
        return self._release(
            "kueue",
            namespace=KUEUE_NAMESPACE,
            values={
                "controllerManager": {
                    **on_system_nodes(self.environment),
                    "manager": manager,
                    # It gives away the chips of a part that has succeeded, which starts again with the whole JobSet.
                    "featureGates": [{"name": "ReclaimablePods", "enabled": False}],
                },
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
        namespace: str,
        values: dict[str, Any],
        depends_on: Sequence[ITerraformDependable] = (),
    ) -> Release:
        chart = CHARTS[name]
        folder = chart.path.removesuffix(f"/{name}")
        return Release(
            self,
            name,
            name=name,
            repository=f"{self.environment.settings.chart_repository or f'oci://{chart.registry}'}/{folder}",
            # Helm refuses any other content, and another content of the version's tag too. The provider passes both
            # on. https://github.com/helm/helm/blob/v3.18.4/pkg/registry/client.go (ValidateReference)
            chart=f"{name}@{chart.digest}",
            version=chart.version,
            namespace=namespace,
            wait=True,
            timeout=900,
            values=[json.dumps(values, indent=2)],
            depends_on=[controller_namespace(self, namespace), *depends_on],
        )

    def _image(self, name: str) -> dict[str, Any]:
        """The values that make a chart pull its image by digest, from IMAGE_REGISTRY if that is set."""
        image = IMAGES[name]
        registry = self.environment.settings.image_registry or image.registry
        return {"image": {"repository": f"{registry}/{image.path}", "tag": image.tag}}


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
    flex_start = any(group.capacity is CapacityMode.FLEX_START for group in environment.groups)
    autoscaled = any(group.autoscaled for group in environment.groups)
    recovery = PODS_READY_TIMEOUT_AUTOSCALED if autoscaled else PODS_READY_TIMEOUT
    return {"timeout": PODS_READY_TIMEOUT_FLEX_START if flex_start else recovery, "recoveryTimeout": recovery}
