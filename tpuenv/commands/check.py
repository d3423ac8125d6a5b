"""`tpuenv check`: would workloads be admitted on this environment's queues, and if not, why and what to change."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from admission import Verdict
from environment import project
from tpuenv.commands.command import command
from tpuenv.jobs.check import ANY_KIND, UNQUEUED, answers
from tpuenv.jobs.manifests import documents
from vocabulary.printable import printable

_NEVER_STARTS = (Verdict.NEVER, Verdict.REFUSED)


@command(
    summary="say whether, where and why workloads would be admitted",
    help=f"""\
Says whether a {ANY_KIND} would be admitted on the queues of this environment while they are empty, which slices it
gets, or why not and what to change: everything that is wrong, at once. Nothing is deployed or asked of a cluster.
Several workloads are admitted one after the other. Fields are checked as kubectl has the API server check them, and the
rules of the webhooks of Kueue, JobSet and KubeRay are applied (docs/admission-rules.md lists them all).
""",
    notes="""\
Exit codes, the worst of all documents: 0 it would start or wait, 1 it would never start or is refused, 2 a document
cannot be used. Services and Secrets are refused where the namespaces of teams take no such (docs/security.md).
ServiceAccounts and Workloads in the files count as there. Not checked: jobs that run or wait in the
cluster; whether images, ConfigMaps, Secrets and claims exist; how pods pack onto CPU nodes; values that no rule asks
about; the program itself.
""",
)
@click.argument(
    "manifests",
    nargs=-1,
    required=True,
    metavar="MANIFEST...",
    type=click.Path(allow_dash=True),
    help="a YAML file, a folder (with those in it), or - for standard input",
)
@click.option(
    "-n",
    "--namespace",
    default="",
    metavar="NAMESPACE",
    help="namespace for manifests without one (default: the team's, if there is only one team)",
)
def check(*, manifests: tuple[str, ...], namespace: str) -> int:
    """Prints what is to be said of every document; the exit code, which the help explains."""
    environment = project.load_and_warn()
    read = [document for name in manifests for document in documents(name)]
    several_files = len({document.file for document in read}) > 1
    explained, unusable, ignored = 0, False, set[str]()
    starts = True
    for answer in answers(environment, read, namespace):
        if answer.explanation:
            first, *rest = answer.explanation.lines()
            print("\n" * bool(explained) + "\n".join([f"{answer.file}: {first}" if several_files else first, *rest]))
            if answer.repeats:
                _note(f"{answer.file}: {answer.explanation.workload} is there twice; on a cluster it would be one")
            explained += 1
            starts = starts and answer.explanation.verdict not in _NEVER_STARTS
        elif answer.problem:
            _error(answer.file, answer.problem)
            unusable = True
        else:
            ignored.add(answer.ignored_kind)
    if ignored and (explained or unusable):
        _note(f"not checked: {', '.join(sorted(ignored))}")
    elif not (explained or unusable):
        _error(", ".join(manifests), _nothing_to_check(sorted(ignored)))
        unusable = True
    return 2 if unusable else int(not starts)


def _nothing_to_check(ignored: Sequence[str]) -> str:
    unqueued = [kind for kind in ignored if kind in UNQUEUED]
    if unqueued:
        return f"kind {unqueued[0]} is not queued here; use {ANY_KIND}"
    return f"holds no {ANY_KIND}" + (f", only {', '.join(ignored)}" if ignored else ": it is empty")


def _note(text: str) -> None:
    print(printable(f"note: {text}"), file=sys.stderr)


def _error(file: str, problem: str) -> None:
    print(printable(f"{file}: {problem}"), file=sys.stderr)
