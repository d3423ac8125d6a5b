"""What the plan identity may read in the cluster: the kinds that the stacks create, and Helm's records of its releases.

Planning writes nothing there. The kubernetes provider 2.38.0 requests a dry run, which takes the right to patch, only
for custom resources without a schema (its manifest/provider/plan.go), and Kueue's have one; the helm provider 3.1.1
only under its experiment `manifest`.
"""

from __future__ import annotations

from collections.abc import Sequence

from cdktf import ITerraformDependable
from cdktf_cdktf_provider_google.data_google_service_account import DataGoogleServiceAccount
from constructs import Construct

from environment import Environment
from environment.fleet import xpk
from environment.names import JOBSET_NAMESPACE, KUEUE_NAMESPACE
from stacks.rbac import API_GROUP, grant_in_cluster, grant_in_namespace

NAME = "tpuenv-plan"

# By API group: the kinds that the stacks have.
KINDS = {
    "": ("limitranges", "namespaces", "resourcequotas", "serviceaccounts"),
    "networking.k8s.io": ("networkpolicies",),
    API_GROUP: ("roles", "rolebindings", "clusterroles", "clusterrolebindings"),
    "admissionregistration.k8s.io": ("validatingadmissionpolicies", "validatingadmissionpolicybindings"),
    "scheduling.k8s.io": ("priorityclasses",),
    "kueue.x-k8s.io": (
        "admissionchecks",
        "clusterqueues",
        "localqueues",
        "provisioningrequestconfigs",
        "resourceflavors",
        "workloadpriorityclasses",
    ),
}

# The kubernetes provider searches them for the schema of the object that it plans.
DEFINITIONS = ("apiextensions.k8s.io", "customresourcedefinitions")

# Helm keeps its releases in ConfigMaps (stacks/base.py) and lists them by label, so single names cannot be given. With
# them are the configurations of Kueue and JobSet and the ConfigMap of the stack `observability`; nothing of the teams.
RELEASES = (JOBSET_NAMESPACE, KUEUE_NAMESPACE)


class PlanAccess(Construct):
    """Read-only, for the account alone. Not in it: pods, jobs, logs, the ConfigMaps of the teams, and any Secret.

    GKE knows a service account of Google's by its email, or by its unique id where a token carries no email.
    https://cloud.google.com/kubernetes-engine/docs/how-to/role-based-access-control
    """

    def __init__(
        self, scope: Construct, id_: str, *, environment: Environment, depends_on: Sequence[ITerraformDependable]
    ) -> None:
        super().__init__(scope, id_)
        names = environment.names
        account = DataGoogleServiceAccount(self, "account", account_id=names.account_email(names.plan_account))
        subjects = [("User", user) for user in (names.account_email(names.plan_account), account.unique_id)]
        grant_in_cluster(
            self,
            ("reader", "readers"),
            name=NAME,
            rules=[
                *(([group], kinds, ["get"]) for group, kinds in KINDS.items()),
                ([DEFINITIONS[0]], [DEFINITIONS[1]], ["list"]),
            ],
            subjects=subjects,
        )
        if environment.settings.xpk_compatibility:
            grant_in_namespace(
                self,
                ("xpk-reader", "xpk-readers"),
                name=NAME,
                namespace=xpk.NAMESPACE,
                rules=[([""], ["configmaps"], ["get"])],
                subjects=subjects,
            )
        for namespace in RELEASES:
            grant_in_namespace(
                self,
                (f"releases-{namespace}", f"release-readers-{namespace}"),
                name=NAME,
                namespace=namespace,
                rules=[([""], ["configmaps"], ["get", "list"])],
                subjects=subjects,
                depends_on=depends_on,
            )
