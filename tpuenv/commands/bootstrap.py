"""`tpuenv bootstrap`: what a project needs before Terraform can start, its APIs and the bucket of the state."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from environment import Environment, project

if TYPE_CHECKING:
    from tpuenv.google.clients import Clients

_DESCRIPTION = """\
Prepares the Google Cloud project of vars.env, before the first deploy. It
enables the APIs that the stacks use and waits until they answer, and makes the
bucket of the Terraform state: versioned, uniform access, no public access.

An administrator runs it once per project; the roles serviceusage.serviceUsageAdmin
and storage.admin are enough. It is safe to repeat: what is right is left alone,
and what was changed by hand is put right and told. A state bucket that was
deleted is not replaced while Google can give it back.
"""

_EPILOG = """\
examples:
  gcloud auth application-default login
  tpuenv bootstrap --dry-run
  tpuenv bootstrap
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "bootstrap",
        help="prepare the Google Cloud project (once; safe to repeat)",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--dry-run", action="store_true", help="show what would be done, and change nothing")
    parser.add_argument(
        "--new-bucket",
        action="store_true",
        help="make a state bucket that was deleted anew; Google does not give the old one back then",
    )


def run(args: argparse.Namespace) -> int:
    wanted = project.real()
    # Not before the settings are known to be good: Google's libraries take a second to load.
    from tpuenv.google.clients import connect

    bootstrap(wanted, connect(wanted.settings.project_id), dry_run=args.dry_run, new_bucket=args.new_bucket)
    return 0


def bootstrap(environment: Environment, clients: Clients, *, dry_run: bool = False, new_bucket: bool = False) -> None:
    """Does all of it, with a line for each thing done. Raises tpuenv.failure.Failed."""
    from tpuenv.google.apis import enable_apis
    from tpuenv.state.bucket import ensure_state_bucket

    say, settings, names = clients.say, environment.settings, environment.names
    say(f"Project {settings.project_id}")
    number, enabled = enable_apis(clients, settings, dry_run=dry_run)
    if not enabled:
        say("All APIs are enabled and answer")
    elif not dry_run:
        say(f"Enabled {len(enabled)} APIs; all of them answer")

    if dry_run and "storage.googleapis.com" in enabled:
        done = [f"made bucket {names.state_bucket}, or put it right"]
    else:
        done = ensure_state_bucket(
            clients,
            name=names.state_bucket,
            region=settings.region,
            labels={"environment": settings.resource_prefix, "stack": "bootstrap"},
            project_number=number,
            dry_run=dry_run,
            anew=new_bucket,
        )
    for each in done:
        say(f"would have {each}" if dry_run else each[0].upper() + each[1:])
    if not done:
        say(f"Bucket {names.state_bucket} is as it should be")

    if dry_run:
        say("Nothing was changed: this was a dry run. Next: tpuenv bootstrap")
    else:
        say("Nothing had to be changed." if not (enabled or done) else "The project is ready.")
        say("Next: tpuenv deploy    (cdktf deploy '*', with its errors explained)")
