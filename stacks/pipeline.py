"""Cloud Build delivers the environment: who plans, who deploys, what starts the builds, where they write.

The code of a pull request must never run as the deploy identity. A trigger runs cloudbuild/*.yaml as the commit has
it, so the author of a pull request writes the program, and only the account limits what it may do:

- the test trigger, the only one that a pull request starts by itself, runs as the test account, which writes its log;
- the plan trigger runs as the plan account, after a collaborator's comment;
- the deploy trigger runs what is on BUILD_BRANCH, after a push to it and a person's approval;
- the plan account reads, and adds records. It acts as no other account, starts no trigger, approves nothing, and
  cannot write the state or replace a record.

A person deploys this stack, and the builds leave it alone. What they could do here all the same: the deploy account may
start its own trigger, to ask for an approval, and Google has one permission for starting triggers and changing them
(https://cloud.google.com/build/docs/iam-roles-permissions#permissions). So what an approved build runs could lift the
approval of the next; `tpuenv plan pipeline` would show it. It could not approve a build, widen a role, or act as
another account.
"""

from __future__ import annotations

import base64
from typing import Any

from cdktf import TerraformResourceLifecycle
from cdktf_cdktf_provider_google.artifact_registry_repository_iam_member import ArtifactRegistryRepositoryIamMember
from cdktf_cdktf_provider_google.cloud_scheduler_job import (
    CloudSchedulerJob,
    CloudSchedulerJobHttpTarget,
    CloudSchedulerJobHttpTargetOauthToken,
)
from cdktf_cdktf_provider_google.cloudbuild_trigger import (
    CloudbuildTrigger,
    CloudbuildTriggerApprovalConfig,
    CloudbuildTriggerGitFileSource,
    CloudbuildTriggerRepositoryEventConfig,
    CloudbuildTriggerRepositoryEventConfigPullRequest,
    CloudbuildTriggerRepositoryEventConfigPush,
    CloudbuildTriggerSourceToBuild,
)
from cdktf_cdktf_provider_google.service_account import ServiceAccount
from cdktf_cdktf_provider_google.storage_bucket import (
    StorageBucket,
    StorageBucketLifecycleRule,
    StorageBucketLifecycleRuleAction,
    StorageBucketLifecycleRuleCondition,
    StorageBucketSoftDeletePolicy,
)
from constructs import Construct

from environment import Environment
from environment.locations import scheduler_region
from stacks.base import EnvironmentStack
from stacks.identities import DEPLOY, PLAN, SCHEDULER, TEST, Identities

# Long enough to examine a release of last quarter; older ones are in the versions of the state and in the commits.
KEPT_DAYS = 90

# A deploy marks the record that it applies, so it could delete records too; what it deletes can be brought back for as
# long as Cloud Storage allows. https://cloud.google.com/storage/docs/soft-delete
SOFT_DELETE_SECONDS = 90 * 24 * 3600

DRIFT_SCHEDULE = "30 4 * * *"  # UTC; after the default maintenance window has begun, before Europe is at work


class Pipeline(EnvironmentStack):
    """Everything is in the region of the repository's connection, for triggers must be, but for the nightly job.

    `stacks` are those that the builds deploy; what they use decides what the identities may do.
    """

    def __init__(self, scope: Construct, id_: str, *, environment: Environment, stacks: list[EnvironmentStack]) -> None:
        super().__init__(scope, id_, environment=environment)
        self.location = environment.settings.build_region
        names = environment.names
        identities = Identities(
            self, "identities", environment=environment, stacks=stacks, records=self._records(names.records_bucket)
        )
        accounts = identities.accounts
        self._builder_readers(accounts)
        records = {"_RECORDS": f"gs://{names.records_bucket}"}
        # Of a person who is no collaborator, the tests wait for the comment as well.
        self._trigger(
            "test",
            "Tests a pull request",
            accounts[TEST],
            {},
            event={"pull_request": self._pull_request("COMMENTS_ENABLED_FOR_EXTERNAL_CONTRIBUTORS_ONLY")},
        )
        self._trigger(
            "plan",
            "Plans a pull request, when a collaborator comments /gcbrun",
            accounts[PLAN],
            records,
            event={"pull_request": self._pull_request("COMMENTS_ENABLED")},
        )
        self._trigger(
            "deploy",
            "Deploys what is pushed, after an approval",
            accounts[DEPLOY],
            records | {"_DEPLOY_TRIGGER": names.trigger("deploy")},
            event={"push": CloudbuildTriggerRepositoryEventConfigPush(branch=self._branch())},
            approval=True,
        )
        self._trigger(
            "destroy",
            "Destroys the environment, after a typed confirmation and an approval",
            accounts[DEPLOY],
            {"_CONFIRM": ""},
            approval=True,
        )
        drift = self._trigger("drift", "Fails when the environment is not as the code says", accounts[PLAN], {})
        self._every_night(drift, identities)
        self._outputs()

    def _records(self, name: str) -> StorageBucket:
        settings = self.environment.settings
        return StorageBucket(
            self,
            "records",
            name=name,
            location=settings.region,
            uniform_bucket_level_access=True,
            public_access_prevention="enforced",
            soft_delete_policy=StorageBucketSoftDeletePolicy(retention_duration_seconds=SOFT_DELETE_SECONDS),
            lifecycle_rule=[
                StorageBucketLifecycleRule(
                    action=StorageBucketLifecycleRuleAction(type="Delete"),
                    condition=StorageBucketLifecycleRuleCondition(age=KEPT_DAYS),
                )
            ],
            force_destroy=not settings.deletion_protection,
            lifecycle=self.protected(settings.deletion_protection),
        )

    def _builder_readers(self, accounts: dict[str, ServiceAccount]) -> None:
        """The builds pull their image from our registry, where it is in ours."""
        names = self.environment.names
        if not self.environment.settings.builder_image.startswith(f"{names.builder_registry_url}/"):
            return
        for purpose in (TEST, PLAN, DEPLOY):
            ArtifactRegistryRepositoryIamMember(
                self,
                f"registry-{purpose}",
                repository=names.builder_registry,
                location=self.environment.settings.region,
                role="roles/artifactregistry.reader",
                member=accounts[purpose].member,
            )

    def _branch(self) -> str:
        """A regular expression for BUILD_BRANCH and no other: of what may be in a name, only dots mean something."""
        return "^" + self.environment.settings.build_branch.replace(".", "\\.") + "$"

    def _pull_request(self, comment_control: str) -> CloudbuildTriggerRepositoryEventConfigPullRequest:
        """https://cloud.google.com/build/docs/api/reference/rest/v1/projects.locations.triggers#CommentControl"""
        return CloudbuildTriggerRepositoryEventConfigPullRequest(branch=self._branch(), comment_control=comment_control)

    def _trigger(
        self,
        build: str,
        description: str,
        account: ServiceAccount,
        substitutions: dict[str, str],
        *,
        event: dict[str, Any] | None = None,
        approval: bool = False,
    ) -> CloudbuildTrigger:
        """cloudbuild/{build}.yaml declares the same substitutions and uses all of them."""
        settings, names = self.environment.settings, self.environment.names
        source = self._on(build, event) if event else self._by_hand(build)
        return CloudbuildTrigger(
            self,
            f"trigger-{build}",
            name=names.trigger(build),
            description=description,
            location=self.location,
            service_account=account.id,
            approval_config=CloudbuildTriggerApprovalConfig(approval_required=True) if approval else None,
            substitutions={"_BUILDER": settings.builder_image, **substitutions},
            **source,
        )

    def _on(self, build: str, event: dict[str, Any]) -> dict[str, Any]:
        """A trigger that an event starts builds what the event is about."""
        repository = self.environment.settings.build_repository
        return {
            "filename": _file(build),
            "repository_event_config": CloudbuildTriggerRepositoryEventConfig(repository=repository, **event),
        }

    def _by_hand(self, build: str) -> dict[str, Any]:
        """A trigger that no event starts builds the head of BUILD_BRANCH, from the file that is there.

        The connection says what kind of repository it is, and Google answers with that; the provider requires a kind,
        and would set ours at every deploy.
        """
        settings = self.environment.settings
        ref = f"refs/heads/{settings.build_branch}"
        repository = {"repository": settings.build_repository, "repo_type": "UNKNOWN"}
        return {
            "source_to_build": CloudbuildTriggerSourceToBuild(ref=ref, **repository),
            "git_file_source": CloudbuildTriggerGitFileSource(path=_file(build), revision=ref, **repository),
            "lifecycle": TerraformResourceLifecycle(
                ignore_changes=[f"{block}[0].repo_type" for block in ("git_file_source", "source_to_build")]
            ),
        }

    def _every_night(self, drift: CloudbuildTrigger, identities: Identities) -> None:
        """In a region that has Cloud Scheduler; what it calls is elsewhere.

        https://cloud.google.com/build/docs/automating-builds/create-scheduled-triggers
        """
        CloudSchedulerJob(
            self,
            "drift-nightly",
            name=self.environment.names.trigger("drift"),
            description="Runs the drift check",
            region=scheduler_region(self.location),
            schedule=DRIFT_SCHEDULE,
            time_zone="Etc/UTC",
            http_target=CloudSchedulerJobHttpTarget(
                http_method="POST",
                uri=f"https://cloudbuild.googleapis.com/v1/{drift.id}:run",
                body=base64.b64encode(b"{}").decode(),
                headers={"Content-Type": "application/json"},
                oauth_token=CloudSchedulerJobHttpTargetOauthToken(
                    service_account_email=identities.accounts[SCHEDULER].email
                ),
            ),
            depends_on=[identities.scheduler_may],
        )

    def _outputs(self) -> None:
        settings, names = self.environment.settings, self.environment.names
        where = f"--region {self.location} --project {settings.project_id}"
        self.output("records", f"gs://{names.records_bucket}", "Where plans are kept as they were reviewed")
        self.output("waiting", f"gcloud builds list --filter status=PENDING {where}", "Shows the builds to approve")
        self.output("approve", f"gcloud builds approve BUILD {where}", "Approves one of them")
        self.output(
            "destroy",
            f"gcloud builds triggers run {names.trigger('destroy')} --substitutions=_CONFIRM={names.prefix} {where}",
            "Asks for the destruction of the environment; a person approves it then",
        )


def _file(build: str) -> str:
    return f"cloudbuild/{build}.yaml"
