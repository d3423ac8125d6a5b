"""TPU VMs without GKE, each slice one Ray cluster."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from cdktf import ITerraformDependable, TerraformProvider, TerraformProviderGeneratorMetadata, TerraformResource
from cdktf_cdktf_provider_google.compute_firewall import ComputeFirewall, ComputeFirewallAllow
from cdktf_cdktf_provider_google.project_iam_member import ProjectIamMember, ProjectIamMemberCondition
from cdktf_cdktf_provider_google.project_service import ProjectService
from cdktf_cdktf_provider_google.service_account import ServiceAccount
from cdktf_cdktf_provider_google.service_account_iam_member import ServiceAccountIamMember
from cdktf_cdktf_provider_google.storage_bucket_iam_member import StorageBucketIamMember
from constructs import Construct

from environment import CapacityMode, Environment, Team, TpuVm
from environment.services import TPU_VM_SERVICES
from stacks.base import EnvironmentStack
from stacks.nodes import OAUTH_SCOPES, SLICE_TIMEOUTS
from stacks.teams import BUCKET_ROLES, project_roles

# Of the provider that has TPU VMs; the other provider of Google, of the same version, has none. Its bindings would
# double what the setup installs for one resource type, which is written here by its Terraform names instead.
GOOGLE_BETA_VERSION = "6.50.0"

# From which addresses IAP forwards. https://cloud.google.com/iap/docs/using-tcp-forwarding#create-firewall-rule
IAP_RANGE = "35.235.240.0/20"

STARTUP_SCRIPT = Path(__file__).with_name("tpu_vm_startup.py")

# What is installed on each host, one file of each package by its hash. 6 KB, where a value of metadata may have 256:
# https://cloud.google.com/compute/docs/metadata/setting-custom-metadata#limitations
PYTHON_PACKAGES = Path(__file__).with_name("tpu_vm_requirements.txt")

# What a member needs to log in: to look up the name of the VM, to reach it, to have an account on it, each with its
# condition. Never tpu.nodes.update, with which `gcloud compute tpus tpu-vm ssh` writes a key into the metadata of the
# VM: it writes the start-up script too, which runs as root.
# OS Login also checks iam.serviceAccounts.actAs on the account of the VM, so these let nobody into the VMs of another
# team, or into GKE's nodes.
# https://cloud.google.com/compute/docs/oslogin/set-up-oslogin#configure_users
#
# A tunnel may go to the port of ssh alone; to which machines, the firewall decides. No condition can name the VMs:
# Google makes up their names (gcloud reads them from guest attributes: command_lib/compute/tpus/tpu_vm/ssh.py), and
# addresses are compared one by one. https://cloud.google.com/iam/docs/conditions-attribute-reference
# Cloud TPU has no policies of single nodes, and its viewer reads only. https://cloud.google.com/tpu/docs/iam
LOGIN_ROLES = {
    "roles/tpu.viewer": "",
    "roles/iap.tunnelResourceAccessor": "destination.port == 22",
    "roles/compute.osLogin": "",
}

# The metadata of a VM: logins by OS Login, whose keys are a person's and not the project's; and what the script reads.
_LOGIN = {"enable-oslogin": "TRUE"}
_METADATA_FILES = {"python-packages": PYTHON_PACKAGES, "startup-script": STARTUP_SCRIPT}

# Where an administrator has logged in with that command, the provider reads the key back.
_KEYS = 'metadata["ssh-keys"]'

_SCHEDULING = {CapacityMode.SPOT: {"spot": True}, CapacityMode.RESERVATION: {"reserved": True}}


class TpuVms(EnvironmentStack):
    """What teams with TPU VMs need, and the VMs themselves, except queued ones.

    A queued resource in Terraform (google_tpu_v2_queued_resource) has neither a service account nor metadata, so no
    start-up script, and does not say which capacity it waits for. Of those the stack makes all but the VMs, and has
    an output with the command for them.
    """

    def __init__(self, scope: Construct, id_: str, *, environment: Environment) -> None:
        super().__init__(scope, id_, environment=environment)
        names = environment.names
        self.services: list[ITerraformDependable] = [
            ProjectService(self, f"service-{service}", service=service, disable_on_destroy=False)
            for service in TPU_VM_SERVICES
        ]
        self.beta = TerraformProvider(
            self,
            "google-beta",
            terraform_resource_type="google-beta",
            terraform_generator_metadata=TerraformProviderGeneratorMetadata(
                provider_name="google-beta",
                provider_version=GOOGLE_BETA_VERSION,
                provider_version_constraint=GOOGLE_BETA_VERSION,
            ),
            terraform_provider_source="hashicorp/google-beta",
        )
        for key, value in {
            "project": environment.settings.project_id,
            "region": environment.settings.region,
            "default_labels": {"environment": environment.settings.resource_prefix, "stack": id_},
        }.items():
            self.beta.add_override(key, value)
        teams = [team for team in environment.teams if any(vm.team == team.name for vm in environment.tpu_vms)]
        needed = {team.name: self._team(team) for team in teams}
        self._logins(teams)
        ssh = self._firewall(
            "ssh",
            names.ssh_firewall,
            "People log in through IAP",
            source_ranges=[IAP_RANGE],
            target_tags=[names.tpu_vm_account(team.name) for team in teams],
            allow=[ComputeFirewallAllow(protocol="tcp", ports=["22"])],
        )
        for vm in environment.tpu_vms:
            if vm.capacity is CapacityMode.QUEUED:
                self.output(f"queue_{vm.name}", self._queue(vm), f"Asks for the TPU VMs {vm.name}")
            else:
                self._vm(vm, [ssh, *needed[vm.team]])
            self.output(f"ssh_{vm.name}", self._ssh(vm), f"Logs in to the head of the Ray cluster {vm.name}")

    def _team(self, team: Team) -> list[ITerraformDependable]:
        """What the VMs of a team need: they may do what its pods may do, and reach one another and no others."""
        settings, names = self.environment.settings, self.environment.names
        name = names.tpu_vm_account(team.name)
        account = ServiceAccount(
            self, f"account-{team.name}", account_id=name, display_name=f"TPU VMs of team {team.name}"
        )
        grants: list[ITerraformDependable] = [
            StorageBucketIamMember(
                self,
                f"bucket-{id_}-{team.name}",
                bucket=names.bucket(team.name),
                role=role,
                member=account.member,
            )
            for id_, role in BUCKET_ROLES.items()
        ]
        grants += [
            ProjectIamMember(self, f"{id_}-{team.name}", project=settings.project_id, role=role, member=account.member)
            for id_, role in project_roles(self.environment).items()
        ]
        for member in team.members:
            ServiceAccountIamMember(
                self,
                f"login-{team.name}-{member.kind.value}-{member.email}",
                service_account_id=account.name,
                role="roles/iam.serviceAccountUser",
                member=member.principal,
            )
        # Ray runs what anybody sends it, so only VMs of the same team may reach its ports, which are any.
        hosts = self._firewall(
            f"hosts-{team.name}",
            name,
            f"Ray and JAX between the TPU VMs of team {team.name}",
            source_tags=[name],
            target_tags=[name],
            allow=[ComputeFirewallAllow(protocol="tcp")],
        )
        return [*grants, hosts]

    def _logins(self, teams: list[Team]) -> None:
        for member in dict.fromkeys(member for team in teams for member in team.members):
            for role, condition in LOGIN_ROLES.items():
                ProjectIamMember(
                    self,
                    f"{role.rpartition('.')[2]}-{member.kind.value}-{member.email}",
                    project=self.environment.settings.project_id,
                    role=role,
                    member=member.principal,
                    condition=ProjectIamMemberCondition(title="ssh only", expression=condition) if condition else None,
                )

    def _firewall(self, id_: str, name: str, description: str, **rule: Any) -> ComputeFirewall:
        return ComputeFirewall(
            self,
            f"firewall-{id_}",
            name=name,
            description=description,
            network=self.environment.names.network,
            direction="INGRESS",
            **rule,
        )

    def _vm(self, vm: TpuVm, needed: list[ITerraformDependable]) -> None:
        settings, names = self.environment.settings, self.environment.names
        account = names.tpu_vm_account(vm.team)
        resource = TerraformResource(
            self,
            f"vm-{vm.name}",
            terraform_resource_type="google_tpu_v2_vm",
            provider=self.beta,
            depends_on=[*self.services, *needed],
        )
        values: dict[str, Any] = {
            "name": names.tpu_vm(vm.name),
            "description": f"TPU VMs {vm.name} of team {vm.team}",
            "zone": vm.zone,
            "accelerator_type": vm.accelerator_type,
            "runtime_version": vm.runtime,
            "network_config": {
                "network": f"projects/{settings.project_id}/global/networks/{names.network}",
                "subnetwork": f"projects/{settings.project_id}/regions/{settings.region}/subnetworks/{names.subnet}",
                "enable_external_ips": False,
            },
            "service_account": {
                "email": names.account_email(account),
                "scope": OAUTH_SCOPES,
            },
            "tags": [account],
            "metadata": _LOGIN | {key: file.read_text(encoding="utf-8") for key, file in _METADATA_FILES.items()},
            "timeouts": SLICE_TIMEOUTS,
            "lifecycle": {"ignore_changes": [_KEYS]},
        }
        if vm.capacity in _SCHEDULING:
            values["scheduling_config"] = _SCHEDULING[vm.capacity]
        for key, value in values.items():
            resource.add_override(key, value)

    def _queue(self, vm: TpuVm) -> str:
        """The command that asks for queued TPU VMs; what is to be deleted again is the queued resource."""
        settings, names = self.environment.settings, self.environment.names
        name, account = names.tpu_vm(vm.name), names.tpu_vm_account(vm.team)
        flags = {
            "node-id": name,
            "project": settings.project_id,
            "zone": vm.zone,
            "accelerator-type": vm.accelerator_type,
            "runtime-version": vm.runtime,
            "network": names.network,
            "subnetwork": names.subnet,
            "service-account": names.account_email(account),
            "tags": account,
            "metadata": ",".join(f"{key}={value}" for key, value in _LOGIN.items()),
            "metadata-from-file": ",".join(f"{key}=stacks/{file.name}" for key, file in _METADATA_FILES.items()),
        }
        words = [f"--{flag}={value}" for flag, value in flags.items()]
        return shlex.join(["gcloud", "compute", "tpus", "queued-resources", "create", name, *words, "--internal-ips"])

    def _ssh(self, vm: TpuVm) -> str:
        """With a zone, start-iap-tunnel takes the name for that of a machine, and looks up none in the project, where
        TPU VMs are not (fetch_instance_after_connect_error in gcloud 528).
        """
        where = f"--zone={vm.zone} --project={self.environment.settings.project_id}"
        tunnel = f"gcloud compute start-iap-tunnel %h 22 --listen-on-stdin {where}"
        user = "gcloud compute os-login describe-profile --format='value(posixAccounts[0].username)'"
        host = (
            f"gcloud compute tpus tpu-vm get-guest-attributes {self.environment.names.tpu_vm(vm.name)} {where} "
            "--filter='key=hostname AND worker_id=0' --format='value(value)'"
        )
        return f'ssh -i "$HOME/.ssh/google_compute_engine" -o ProxyCommand=\'{tunnel}\' "$({user})@$({host})"'
