"""The accounts that builds run as, and their roles: what the stacks need, by stacks/permissions.py, and no more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cdktf_cdktf_provider_google.project_iam_custom_role import ProjectIamCustomRole
from cdktf_cdktf_provider_google.project_iam_member import ProjectIamMember, ProjectIamMemberCondition
from cdktf_cdktf_provider_google.service_account import ServiceAccount
from cdktf_cdktf_provider_google.service_account_iam_member import ServiceAccountIamMember
from cdktf_cdktf_provider_google.storage_bucket import StorageBucket
from cdktf_cdktf_provider_google.storage_bucket_iam_member import (
    StorageBucketIamMember,
    StorageBucketIamMemberCondition,
)
from constructs import Construct

from environment import Environment
from stacks.base import EnvironmentStack
from stacks.permissions import Needed, needed

TEST, PLAN, DEPLOY, SCHEDULER = "test", "plan", "deploy", "scheduler"

ACT_AS = "roles/iam.serviceAccountUser"

# Checked by triggers.run, beside the right to act as the trigger's account; approving is another permission.
# https://cloud.google.com/build/docs/iam-roles-permissions
START_BUILDS = "cloudbuild.builds.create"

SET_BUCKET_POLICY = "storage.buckets.setIamPolicy"


class Identities(Construct):
    """The test account writes logs. The plan account reads what the stacks create, too, and adds records of plans. The
    deploy account creates, updates and deletes the types of the stacks.

    IAM limits what can be limited: which buckets, by name; which roles it may grant, to those that the stacks grant.
    The rest holds for the whole project. Starting a trigger takes the right to act as its account: so the scheduler's
    starts the drift check and no deploy, and the deploy account, to ask for an approval, itself again.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        environment: Environment,
        stacks: Sequence[EnvironmentStack],
        records: StorageBucket,
    ) -> None:
        super().__init__(scope, id_)
        self.environment = environment
        names = environment.names
        self.accounts = {
            TEST: self._account(TEST, names.test_account, "Tests pull requests"),
            PLAN: self._account(PLAN, names.plan_account, "Plans pull requests, looks for drift"),
            DEPLOY: self._account(DEPLOY, names.deploy_account, "Deploys and destroys the TPU training environment"),
            SCHEDULER: self._account(SCHEDULER, names.scheduler_account, "Starts the nightly drift check"),
        }
        permissions = needed(stack.to_terraform() for stack in stacks)
        self._grant([PLAN], "plan", "plan: read what the stacks make", permissions.read)
        self._grant_deploy(permissions)
        self._grant([DEPLOY, SCHEDULER], "start_builds", "start builds", [START_BUILDS])
        nodes = f"projects/{environment.settings.project_id}/serviceAccounts/{names.node_account_email}"
        self._acts_as(DEPLOY, "nodes", nodes)
        self._acts_as(DEPLOY, "itself", self.accounts[DEPLOY].name)
        self.scheduler_may = self._acts_as(SCHEDULER, "plan", self.accounts[PLAN].name)
        for purpose in (TEST, PLAN, DEPLOY):
            # Logs can be added to with it, not changed or deleted.
            # https://cloud.google.com/build/docs/securing-builds/configure-user-specified-service-accounts
            self._member(purpose, "logs", "roles/logging.logWriter")
        # Replacing an object takes the right to delete it, so a record stays as the first plan wrote it.
        # https://cloud.google.com/storage/docs/access-control/iam-permissions
        for purpose, role in ((PLAN, "objectCreator"), (DEPLOY, "objectUser")):
            StorageBucketIamMember(
                self,
                f"records-{purpose}",
                bucket=records.name,
                role=f"roles/storage.{role}",
                member=self.accounts[purpose].member,
            )
        self._state()

    def _account(self, purpose: str, name: str, what: str) -> ServiceAccount:
        return ServiceAccount(self, f"{purpose}-account", account_id=name, display_name=what)

    def _grant_deploy(self, permissions: Needed) -> None:
        self._grant(
            [DEPLOY],
            "deploy",
            "deploy: make, change and delete what the stacks use",
            {*permissions.read, *permissions.write},
        )
        for role in permissions.roles:
            self._member(DEPLOY, role.rpartition(".")[2], role)
        grants = dict(permissions.grants)
        bucket_roles = grants.pop(SET_BUCKET_POLICY)
        self._grant(
            [DEPLOY],
            "deploy_buckets",
            "deploy: change and delete the environment's buckets",
            {*permissions.own, SET_BUCKET_POLICY},
            condition=("only our buckets, only their roles", f"{self._our_buckets()} && {_only(bucket_roles)}"),
        )
        for permission, roles in grants.items():
            service = permission.partition(".")[0]
            self._grant(
                [DEPLOY],
                f"grant_{service}",
                f"deploy: grant roles ({service})",
                {permission},
                condition=("only roles that the stacks grant", _only(roles)),
            )

    def _our_buckets(self) -> str:
        """Buckets of teams and of image builds by the beginning of their names, so that a new team's is one of them.

        Not the state and the records. An environment whose prefix begins with this one's is not kept out.
        A condition takes twelve operators. https://cloud.google.com/iam/docs/conditions-overview#limits
        """
        names = self.environment.names
        root = "projects/_/buckets/"
        kept = [
            f'resource.name != "{root}{bucket}" && !resource.name.startsWith("{root}{bucket}/")'
            for bucket in (names.state_bucket, names.records_bucket)
        ]
        return " && ".join([f'resource.name.startsWith("{root}{names.bucket("")}")', *kept])

    def _state(self) -> None:
        """The state of everything but the pipeline: plans read it without the lock, deploys write it."""
        names = self.environment.names
        own = f"projects/_/buckets/{names.state_bucket}/objects/{names.state_prefix}/pipeline/"
        for purpose, role in ((PLAN, "roles/storage.objectViewer"), (DEPLOY, "roles/storage.objectUser")):
            StorageBucketIamMember(
                self,
                f"state-{purpose}",
                bucket=names.state_bucket,
                role=role,
                member=self.accounts[purpose].member,
                condition=StorageBucketIamMemberCondition(
                    title="not the state of the pipeline", expression=f'!resource.name.startsWith("{own}")'
                ),
            )

    def _grant(
        self,
        purposes: Sequence[str],
        name: str,
        title: str,
        permissions: Iterable[str],
        *,
        condition: tuple[str, str] | None = None,
    ) -> None:
        """A custom role of these permissions for those accounts; a condition has a title and an expression."""
        role = ProjectIamCustomRole(
            self,
            f"role-{name}",
            role_id=self.environment.names.role(name),
            title=f"{self.environment.names.prefix} {title}",
            permissions=sorted(permissions),
        )
        for purpose in purposes:
            self._member(purpose, name, role.name, condition)

    def _member(self, purpose: str, name: str, role: str, condition: tuple[str, str] | None = None) -> None:
        ProjectIamMember(
            self,
            f"{purpose}-has-{name}",
            project=self.environment.settings.project_id,
            role=role,
            member=self.accounts[purpose].member,
            condition=ProjectIamMemberCondition(title=condition[0], expression=condition[1]) if condition else None,
        )

    def _acts_as(self, purpose: str, whom: str, account: str) -> ServiceAccountIamMember:
        return ServiceAccountIamMember(
            self,
            f"{purpose}-acts-as-{whom}",
            service_account_id=account,
            role=ACT_AS,
            member=self.accounts[purpose].member,
        )


def _only(roles: Sequence[str]) -> str:
    """https://cloud.google.com/iam/docs/setting-limits-on-granting-roles"""
    listed = ", ".join(f"'{role}'" for role in roles)
    return f"api.getAttribute('iam.googleapis.com/modifiedGrantsByRole', []).hasOnly([{listed}])"
