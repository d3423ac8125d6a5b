"""What every stack has: its state, the Google provider, labels, the guard; and how a stack reaches the cluster."""

from __future__ import annotations

from typing import Any

from cdktf import GcsBackend, TerraformOutput, TerraformResource, TerraformResourceLifecycle, TerraformStack
from cdktf_cdktf_provider_google.data_google_container_cluster import DataGoogleContainerCluster
from cdktf_cdktf_provider_google.provider import GoogleProvider
from cdktf_cdktf_provider_helm.provider import HelmProvider, HelmProviderKubernetes, HelmProviderKubernetesExec
from cdktf_cdktf_provider_kubernetes.provider import KubernetesProvider, KubernetesProviderExec
from constructs import Construct

from environment import Environment

# A token is asked for when it is needed and kept nowhere: what a data source reads is written into states and plans.
_TOKENS: dict[str, Any] = {
    "api_version": "client.authentication.k8s.io/v1",
    "command": "tpuenv",
    "args": ["token"],
}


class EnvironmentStack(TerraformStack):
    """One stack, one state: `{TF_STATE_PREFIX}/{id_}` in the state bucket.

    Everything in it carries the labels `environment` and `stack`. A guard refuses at plan, before anything is touched,
    to destroy the stack while DELETION_PROTECTION holds; lifting it needs no apply, because it is not in the state.
    """

    def __init__(self, scope: Construct, id_: str, *, environment: Environment) -> None:
        super().__init__(scope, id_)
        self.environment = environment
        settings, names = environment.settings, environment.names
        GcsBackend(self, bucket=names.state_bucket, prefix=f"{names.state_prefix}/{id_}")
        GoogleProvider(
            self,
            "google",
            project=settings.project_id,
            region=settings.region,
            default_labels={"environment": settings.resource_prefix, "stack": id_},
        )
        # cdktf's own class for terraform_data asks the Terraform on the PATH for its version at every synthesis.
        TerraformResource(
            self,
            "guard",
            terraform_resource_type="terraform_data",
            lifecycle=self.protected(settings.deletion_protection),
        )

    def protected(self, protection: bool, *, ignore_changes: list[str] | None = None) -> TerraformResourceLifecycle:
        """A lifecycle that makes Terraform refuse to destroy the object while `protection` holds."""
        return TerraformResourceLifecycle(prevent_destroy=protection, ignore_changes=ignore_changes)

    def output(self, id_: str, value: Any, description: str) -> None:
        """An output that a person or a pipeline reads."""
        output = TerraformOutput(self, f"output-{id_}", value=value, description=description)
        output.override_logical_id(id_)


class ClusterUser(EnvironmentStack):
    """A stack that reads the cluster by name and calls it at its DNS endpoint.

    That endpoint has a public certificate and IAM decides who may use it, so no cluster certificate is passed. Helm
    keeps its releases in ConfigMaps, which the plan account of a pipeline may read, and not in Secrets.
    """

    def __init__(self, scope: Construct, id_: str, *, environment: Environment) -> None:
        super().__init__(scope, id_, environment=environment)
        cluster = DataGoogleContainerCluster(
            self, "gke", name=environment.names.cluster, location=environment.settings.region
        )
        endpoint = cluster.control_plane_endpoints_config.get(0).dns_endpoint_config.get(0).endpoint
        host = f"https://{endpoint}"
        KubernetesProvider(self, "kubernetes", host=host, exec=[KubernetesProviderExec(**_TOKENS)])
        HelmProvider(
            self,
            "helm",
            helm_driver="configmap",
            kubernetes=HelmProviderKubernetes(host=host, exec=HelmProviderKubernetesExec(**_TOKENS)),
        )
