"""Every name that more than one room uses."""

from __future__ import annotations

from typing import Final

from environment.settings.model import Settings

# The stacks that a person deploys where there is a pipeline: a build must not change its own identity, and may not act
# as the accounts of TPU VMs.
PIPELINE = "pipeline"
TPU_VMS = "tpu-vms"

OBSERVABILITY = "observability"  # the stack that a setting switches off

CPU_FLAVOR = "cpu"
KUEUE_NAMESPACE = "kueue-system"
JOBSET_NAMESPACE = "jobset-system"

# Below which Google's APIs and registries have their names, and where they are for a network that reaches nothing else.
# https://cloud.google.com/vpc/docs/configure-private-google-access#domain-options
GOOGLE_NAMES = ("googleapis.com", "pkg.dev", "gcr.io")
GOOGLE_APIS = ("199.36.153.8/30", "34.126.0.0/18")  # private.googleapis.com, whose names lead to the first


class Names:
    """Names computed from the settings, never random: a stack may use a name without a token of another stack."""

    cpu_pool: Final = "cpu"
    system_pool: Final = "system"

    def __init__(self, settings: Settings) -> None:
        prefix = settings.resource_prefix
        self.prefix: Final = prefix
        self.project_id: Final = settings.project_id
        self.state_bucket: Final = settings.tf_state_bucket or f"{self.project_id}-{prefix}-tf-state"
        self.state_prefix: Final = settings.tf_state_prefix or prefix  # folder in the state bucket

        # The Kubernetes service account that jobs of a team run as. To IAM it is its namespace and its name, in any
        # cluster of the project, and another environment there may have a team of the same name.
        # https://cloud.google.com/kubernetes-engine/docs/concepts/workload-identity#identity_sameness
        self.team_account: Final = f"{prefix}-training"

        self.network: Final = f"{prefix}-network"
        self.subnet: Final = f"{prefix}-subnet"
        self.pods_range: Final = f"{prefix}-pods"
        self.services_range: Final = f"{prefix}-services"
        self.router: Final = f"{prefix}-router"
        self.nat: Final = f"{prefix}-nat"
        self.dns_zones: Final = {f"{prefix}-{name.replace('.', '-')}": name for name in GOOGLE_NAMES}
        self.webhook_firewall: Final = f"{prefix}-webhooks"
        self.node_account: Final = f"{prefix}-nodes"  # id of the nodes' Google service account
        self.node_account_email: Final = self.account_email(self.node_account)
        self.cluster: Final = f"{prefix}-cluster"
        self.registry: Final = f"{prefix}-images"
        self.registry_url: Final = f"{settings.region}-docker.pkg.dev/{self.project_id}/{self.registry}"
        self.builder_registry: Final = f"{prefix}-builder"  # the image that the pipeline's builds run in, and no other
        self.builder_registry_url: Final = f"{settings.region}-docker.pkg.dev/{self.project_id}/{self.builder_registry}"
        self.build_account: Final = f"{prefix}-build"  # what builds of images run as
        self.build_bucket: Final = f"{self.project_id}-{prefix}-builds"  # their source and their logs
        self.tensorboard: Final = f"{prefix}-tensorboard"
        self.tensorboard_role: Final = self.role("tensorboard_writer")  # writes TensorBoard experiments

        self.ssh_firewall: Final = f"{prefix}-tpu-vms-ssh"

        self.test_account: Final = f"{prefix}-test"  # what the tests of a pull request run as
        self.plan_account: Final = f"{prefix}-plan"  # what plans of pull requests, and the drift check, run as
        self.deploy_account: Final = f"{prefix}-deploy"  # deploys and destroys
        self.scheduler_account: Final = f"{prefix}-drift"  # starts the drift check every night
        self.records_bucket: Final = f"{self.project_id}-{prefix}-plans"  # plans as they were reviewed

    @property
    def image_build_options(self) -> tuple[str, ...]:
        """What `gcloud builds submit` takes for a build of an image: whom it runs as, where its source and log go."""
        account = f"projects/{self.project_id}/serviceAccounts/{self.account_email(self.build_account)}"
        return (
            *("--project", self.project_id, "--service-account", account),
            *("--gcs-source-staging-dir", f"gs://{self.build_bucket}/source"),
            *("--gcs-log-dir", f"gs://{self.build_bucket}/logs"),
        )

    def account_email(self, account: str) -> str:
        """The email address of a Google service account of the project, by its id."""
        return f"{account}@{self.project_id}.iam.gserviceaccount.com"

    def role(self, purpose: str) -> str:
        """The id of a custom role of the project. Role ids have no hyphens."""
        return f"{self.prefix.replace('-', '_')}_{purpose}"

    def bucket(self, team: str) -> str:
        """A team's bucket. Bucket names are global, so the project's id is part of it."""
        return f"{self.project_id}-{self.prefix}-{team}"

    def drain(self, team: str) -> str:
        """The Helm release that drains a team's ClusterQueue before that is deleted."""
        return f"drain-{team}"

    def eviction(self, team: str) -> str:
        """The Helm release that drains the queue before the team's namespace is deleted."""
        return f"evict-{team}"

    def workload_policy(self, group: str) -> str:
        """The Compute Engine policy by which the slices of a pool group are placed."""
        return f"{self.prefix}-{group}"

    def tpu_vm(self, name: str) -> str:
        """A slice of TPU VMs, as the Cloud TPU API names it."""
        return f"{self.prefix}-{name}"

    def tpu_vm_account(self, team: str) -> str:
        """The id of the Google service account of a team's TPU VMs; also their network tag and firewall rule."""
        return f"{self.prefix}-vm-{team}"

    def trigger(self, build: str) -> str:
        """The Cloud Build trigger of cloudbuild/{build}.yaml."""
        return f"{self.prefix}-{build}"
