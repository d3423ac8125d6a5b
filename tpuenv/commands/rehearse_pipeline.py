"""`tpuenv rehearse-pipeline`: the builds of cloudbuild/ on this machine, from an empty project and back to it."""

from __future__ import annotations

import os
from pathlib import Path

import environment
from environment import project
from tpuenv.commands import options
from tpuenv.commands.command import command
from tpuenv.rehearsals.commit import check_files, commit_of, with_pipeline
from tpuenv.rehearsals.pipeline import PipelineRehearsal
from tpuenv.rehearsals.world import environment_to_rehearse, open_world, overrides


@command(
    name="rehearse-pipeline",
    summary="rehearse the builds of Cloud Build on this machine, without a cloud account",
    examples=("tpuenv rehearse-pipeline", "TPU_TYPE=v5p-128 NUM_TPU_POOLS=1 ZONE=us-east5-a tpuenv rehearse-pipeline"),
    notes="What is rehearsed is the checkout as it is, committed or not. The image of the steps is this environment "
    "(.venv), which the same setup has installed; cloudbuild/builder.yaml and the Dockerfile, which need Docker, are "
    "not run.",
)
@options.flag("--verbose", "print the whole logs of the builds")
@options.flag("--skip-tests", "leave out the test build, where the tests have just run")
@options.rehearsal
def rehearse_pipeline(*, verbose: bool, skip_tests: bool, yes_it_exists: bool, folder: Path) -> int:
    """Does what Cloud Build does with this repository. A person deploys foundation and the pipeline; then the steps of
    cloudbuild/*.yaml run as local processes, started by the triggers that were deployed, with the rights of their
    service accounts: a pull request is tested and, after a comment, planned; a push is deployed after approvals; the
    drift check reports a change by hand, which is put back only after another approval; a second pull request has no
    changes; the environment is destroyed, but not on a wrong confirmation. No account, no credentials, no network, no
    Docker. The exit code is 0 only if all of that went well.
    """
    described = environment_to_rehearse("rehearse-pipeline", yes_it_exists=yes_it_exists)
    settings = with_pipeline(described, overrides(os.environ))
    rehearsed = environment.load(
        project.folder() / "vars.env", {**os.environ, **settings}, fleet=project.folder() / "fleet.yaml"
    )
    check_files(rehearsed, settings)
    with open_world(rehearsed, folder, settings) as world:
        commit = commit_of(settings)
        return PipelineRehearsal(world, rehearsed, commit, tests=not skip_tests, verbose=verbose).run()
