"""`tpuenv bootstrap`: what a project needs before Terraform can start, its APIs and the bucket of the state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from environment import Environment, project
from tpuenv.commands import options
from tpuenv.commands.command import command

if TYPE_CHECKING:
    from tpuenv.google.clients import Clients


@command(
    summary="prepare the Google Cloud project (once; safe to repeat)",
    examples=("gcloud auth application-default login", "tpuenv bootstrap --dry-run", "tpuenv bootstrap"),
)
@options.flag("--dry-run", "show what would be done, and change nothing")
@options.flag("--new-bucket", "create a state bucket again that was deleted; Google does not restore the old one then")
def bootstrap(*, dry_run: bool, new_bucket: bool) -> None:
    """Prepares the Google Cloud project of vars.env, before the first deploy. It enables the APIs that the stacks use
    and waits until they answer, and creates the bucket of the Terraform state: versioned, uniform access, no public
    access.

    Before it changes anything it stops where there is no open billing account, or a permission is missing.

    An administrator runs it once per project; the roles serviceusage.serviceUsageAdmin and storage.admin are enough.
    It is safe to repeat: what is right is left alone, and what was changed by hand is put right and reported. A state
    bucket that was deleted is not replaced while Google can restore it.
    """
    environment = project.load_for_google()
    # Not before the settings are known to be good: Google's libraries take a second to load.
    from tpuenv.google.clients import connect

    prepare_project(environment, connect(environment.settings.project_id), dry_run=dry_run, new_bucket=new_bucket)


def prepare_project(
    environment: Environment, clients: Clients, *, dry_run: bool = False, new_bucket: bool = False
) -> None:
    """Does all of it, with a line for each thing done. Raises tpuenv.failure.Failed."""
    from tpuenv.google.apis import enable_apis
    from tpuenv.preflight.report import require_for_bootstrap
    from tpuenv.state.bucket import ensure_state_bucket

    say, settings, names = clients.say, environment.settings, environment.names
    say(f"Project {settings.project_id}")
    require_for_bootstrap(environment, clients)
    number, enabled = enable_apis(clients, settings, dry_run=dry_run)
    if not enabled:
        say("All APIs are enabled and answer")
    elif not dry_run:
        say(f"Enabled {len(enabled)} APIs; all of them answer")

    if dry_run and "storage.googleapis.com" in enabled:
        done = [f"created bucket {names.state_bucket}, or corrected it"]
    else:
        done = ensure_state_bucket(
            clients,
            name=names.state_bucket,
            region=settings.region,
            labels={"environment": settings.resource_prefix, "stack": "bootstrap"},
            project_number=number,
            dry_run=dry_run,
            replace_deleted=new_bucket,
        )
    for change in done:
        say(f"would have {change}" if dry_run else change[0].upper() + change[1:])
    if not done:
        say(f"Bucket {names.state_bucket} is as it should be")

    if dry_run:
        say("Nothing was changed: this was a dry run. Next: tpuenv bootstrap")
    else:
        say("Nothing had to be changed." if not (enabled or done) else "The project is ready.")
        say("Before you pay: tpuenv preflight    (quotas, machine types, reservations, policies)")
        say("Next: tpuenv deploy    (cdktf deploy '*', with its errors explained)")
