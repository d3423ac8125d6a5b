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
from vocabulary.keys import TEAM_ACCOUNT
from vocabulary.printable import counted

# What is read of a row of each verdict: nothing measures what is not verified.
_SHORT = {"not verified": "{what}", "simulated": "{what} {expected}"}


def verify(parts: Parts) -> None:
    """Prints what each team got on each pool group; what failed is a problem.

    Everything in the fake cluster is decided when it is asked for, so no run is waited for.
    """
    command = [sys.executable, "-m", "tpuenv", "verify", "--json", "--auto-approve", "--timeout", "0s"]
    run = subprocess.run(command, cwd=project.ROOT, env=parts.world.environment(), capture_output=True, text=True)
    try:
        rows = json.loads(run.stdout)["rows"]
    except ValueError:
        parts.wrong(f"tpuenv verify ended with exit code {run.returncode}: {run.stderr.strip()}")
        return
    runs: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        words = _SHORT.get(row["verdict"], "{what}: {measured}").format(**row)
        runs.setdefault(f"{row['team']} on {row['group']}", {}).setdefault(row["verdict"], []).append(words)
    for name, verdicts in runs.items():
        failed = verdicts.pop("failed", [])
        for words in failed:
            parts.wrong(f"{name}: {words}")
        if verdicts:
            parts.say(f"  {name}: " + "; ".join(f"{word}: {', '.join(what)}" for word, what in verdicts.items()))


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
            parts.say(f"  {team.name}: its account writes, reads and deletes in its own bucket; {refused}")


@contextlib.contextmanager
def _pod(parts: Parts, team: str) -> Iterator[Mapping[str, str]]:
    """The variables of a pod of the team, whose metadata server gives it a token of the team's account."""
    from rehearsal import http_server
    from rehearsal.google.permissions import token_of
    from rehearsal.http_server import Request, Response, json_response

    own = parts.world.project
    pool = f"projects/{own.number}/locations/global/workloadIdentityPools/{own.id_}.svc.id.goog"
    token = token_of(f"principal://iam.googleapis.com/{pool}/subject/ns/{team}/sa/{TEAM_ACCOUNT}")

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
