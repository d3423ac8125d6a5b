"""`tpuenv submit`: a run of a recipe, from its manifest to the log of its first host."""

from __future__ import annotations

import sys
from dataclasses import replace

from admission import Verdict
from environment import Environment, project
from manifests.render import BadManifest, Run, rendered
from tpuenv.commands import options
from tpuenv.commands.command import command
from tpuenv.compilation.known import known
from tpuenv.failure import Failed, WrongArgument
from tpuenv.jobs.check import answers
from tpuenv.jobs.manifests import Document, documents_in
from tpuenv.jobs.runs import run_of
from tpuenv.terminal.progress import Progress
from vocabulary.printable import printable


@command(
    summary="run a recipe on the cluster, and follow it",
    examples=(
        "tpuenv submit hello-tpu                     one slice; follow it to its end",
        "tpuenv submit hello-tpu --slices 2 --set ici_model=4",
        "tpuenv submit hello-tpu --detach            submit it, and do not follow it",
    ),
    notes="""\
Ctrl-C while it follows leaves the job running; `tpuenv logs JOB --follow` follows it again, `tpuenv cancel JOB` stops
it, and `tpuenv jobs` lists all. The log goes to standard output, what is said of the job to standard error.

Exit codes: 0 the job succeeded (with --detach: was created), 1 it failed, would never be admitted or could not be
created, 2 wrong settings or arguments, 130 interrupted.
""",
)
@options.run
@options.flag("--detach", "end when the job is created")
def submit(
    *,
    recipe: str,
    team: str | None,
    group: str | None,
    slices: int,
    settings: tuple[str, ...],
    name: str | None,
    detach: bool,
) -> int:
    """Renders a run of a recipe as `tpuenv render` does, checks as `tpuenv check` does whether the queues would ever
    admit it, looks up its image in the environment's registry, creates it in the cluster, says what it waits for until
    every host runs, prints the log of the first host (slice 0, host 0), and at the end how the job ended. The cluster
    is reached by its DNS endpoint with your Google credentials; kubectl is not needed.
    """
    environment = project.load_for_google()
    run = run_of(environment, recipe, team=team, group=group, slices=slices, settings=settings, name=name)
    _check(environment, run)
    if compiled := known(run):
        print(f"note: {compiled}", file=sys.stderr)
    # Not before the run is known to be good: Google's libraries take a second to load.
    from tpuenv.google.clients import connect_without_quota_project
    from tpuenv.jobs.diagnosis.queues import stopped_queue
    from tpuenv.jobs.follow import follow_again, following
    from tpuenv.jobs.images import how_to_build, pinned_images
    from tpuenv.jobs.links import link_lines, log_link, read_links
    from tpuenv.jobs.submission import create
    from tpuenv.kubernetes.connection import connect

    with Progress(out=sys.stderr, still=" so far") as progress:
        progress.doing("looking up the image")
        clients = connect_without_quota_project(environment.settings.project_id)
        images = pinned_images(environment, clients, run.recipe)
        progress.doing(f"creating {run.name}")
        cluster = replace(connect(environment), say=progress.line)
        manifests = [document.value for document in _documents(replace(run, images=images))]
        job = create(cluster, manifests, recipe=run.recipe.name)
        progress.doing("")
        progress.line(f"Created {job}")
        # Of a job that is followed, this is said as long as it waits.
        if detach and (queue := stopped_queue(cluster, job)):
            progress.line(f"  It waits: {queue}")
        log = {"log": log_link(environment, job)}
        for line in link_lines({**read_links(cluster), **log}):
            progress.line(line)
        code = 0
        if not detach:
            build, is_cluster = how_to_build([run.recipe.name]), job.kind == "RayCluster"
            code = following(cluster, job, progress=progress, build=build, until_it_runs=is_cluster)
    if detach:
        print(f"To follow it: {follow_again(job.name, job.team)}", flush=True)
    else:
        print("\n".join(link_lines(log)), file=sys.stderr)
    return code


def _documents(run: Run) -> list[Document]:
    """What the run consists of. Raises WrongArgument."""
    try:
        texts = rendered(run)
    except BadManifest as bad:
        raise WrongArgument(str(bad)) from None
    name = run.recipe.name
    documents = [document for file, text in texts.items() for document in documents_in(text, file=f"{name}/{file}")]
    if problems := [f"{document.file}: {document.problem}" for document in documents if document.problem]:
        raise WrongArgument(printable("\n".join(problems)))
    return documents


def _check(environment: Environment, run: Run) -> None:
    """Prints what there is to say of the run's admission. Raises Failed where it would never start, WrongArgument."""
    starts = True
    for answer in answers(environment, _documents(run), run.team.name):
        if answer.problem:
            raise WrongArgument(printable(f"{answer.file}: {answer.problem}"))
        if answer.explanation:
            never = answer.explanation.verdict in (Verdict.NEVER, Verdict.REFUSED)
            starts = starts and not never
            if answer.explanation.verdict != Verdict.ADMITTED:
                print("\n".join(answer.explanation.lines()), file=sys.stderr)
            else:
                for note in answer.explanation.notes:
                    print(printable(f"note: {note}"), file=sys.stderr)
    if not starts:
        raise Failed("Nothing was created: correct the run, or the recipe, as said above.")
