"""`tpuenv verify` in a rehearsal; and what no program there can try: which buckets the account of each team may use."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping

from environment import project
from manifests.recipes import FOLDER
from tpuenv.rehearsals.parts import Parts
from tpuenv.verification.plan import RECIPE, other_buckets
from vocabulary.printable import counted


def verify(parts: Parts) -> None:
    """Prints what each team got on each pool group; what failed is a problem.

    Everything in the fake cluster is decided when it is asked for, so no run is waited for.
    """
    command = [sys.executable, "-m", "tpuenv", "verify", "--json", "--auto-approve", "--timeout", "1s"]
    run = subprocess.run(command, cwd=project.ROOT, env=parts.world.environment(), capture_output=True, text=True)
    try:
        rows = json.loads(run.stdout)["rows"]
    except ValueError:
        parts.wrong(f"tpuenv verify ended with exit code {run.returncode}: {run.stderr.strip()}")
        return
    runs: dict[str, list[str]] = {}
    unmeasured: dict[str, dict[str, None]] = {}  # by the reason, which is the same for every run
    for row in rows:
        name = " on ".join(filter(None, (row["team"], row["group"])))
        if row["verdict"] == "failed":
            parts.wrong(f"{name}: {row['what']}: {row['measured']}")
        elif row["verdict"] == "not verified" and not row["expected"]:
            unmeasured.setdefault(row["measured"], {})[row["what"]] = None
        else:
            runs.setdefault(name, []).append("{what}: {measured} ({verdict})".format(**row))
    for name, words in runs.items():
        parts.say(f"  {name}: {', '.join(words)}")
    for why, what in unmeasured.items():
        parts.say(f"  not verified, because {why}: {', '.join(what)}")


def try_buckets(parts: Parts) -> None:
    """Runs the part of hello-tpu that tries buckets, as each team's account, on the fake Cloud Storage with its IAM.

    What an account must be able to do and is refused is a problem, and what it must not and can.
    """
    for team in parts.environment.teams:
        others = other_buckets(parts.environment, team.name)
        with _pod(parts, team.name) as variables:
            program = FOLDER / RECIPE / "bucket_access.py"
            command = [sys.executable, str(program), parts.environment.names.bucket(team.name), *others]
            run = subprocess.run(command, env=variables, capture_output=True, text=True)
        if run.returncode:
            parts.wrong(f"{team.name}: {'; '.join((run.stdout or run.stderr).splitlines())}")
        else:
            refused = f"{counted(len(others), 'other')} refused"
            parts.say(f"  as the account of {team.name}: its bucket can be written, read and deleted in; {refused}")


@contextlib.contextmanager
def _pod(parts: Parts, team: str) -> Iterator[Mapping[str, str]]:
    """The variables of a pod of the team, whose metadata server gives it a token of the team's account."""
    from rehearsal import http_server
    from rehearsal.google.permissions import token_of
    from rehearsal.http_server import Request, Response, json_response

    own = parts.world.project
    pool = f"projects/{own.number}/locations/global/workloadIdentityPools/{own.id_}.svc.id.goog"
    account = parts.environment.names.team_account
    token = token_of(f"principal://iam.googleapis.com/{pool}/subject/ns/{team}/sa/{account}")

    def answer(_: Request) -> Response:
        return json_response({"access_token": token})

    server, address = http_server.start(answer)
    try:
        yield {
            "PATH": os.defpath,
            "STORAGE_EMULATOR_HOST": parts.world.address,
            "GCE_METADATA_HOST": address.removeprefix("http://"),
        }
    finally:
        server.shutdown()
        server.server_close()
