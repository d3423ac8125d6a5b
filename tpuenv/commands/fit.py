"""`tpuenv fit`: does the training step of a run fit the memory of its slice, and how fast can it be at best."""

from __future__ import annotations

from environment import project
from manifests.recipes import BadManifest, all_recipes
from manifests.render import Run
from tpuenv.commands import options
from tpuenv.commands.command import command
from tpuenv.compilation import alternatives, verdict
from tpuenv.compilation.alternatives import Alternative
from tpuenv.compilation.answers import Answer, Compiled, Refused, TooLarge
from tpuenv.compilation.compiler import Compiler
from tpuenv.compilation.largest_batch import largest, search
from tpuenv.compilation.question import Question, can_be_compiled, question_of
from tpuenv.failure import WrongArgument
from tpuenv.jobs.runs import run_of
from tpuenv.terminal.progress import Progress


@command(
    summary="compile the training step for the very slice: does it fit its memory",
    examples=(
        "tpuenv fit maxtext",
        "tpuenv fit maxtext --slices 2 --set preset=llama3-8b",
        "tpuenv fit maxtext --set preset=sandbox-6.5b --largest-batch",
    ),
    notes="""\
Exit codes: 0 it fits, 1 it does not, or could not be compiled, 2 it is invalid: a wrong argument, or one that MaxText
refuses. `make setup-workloads` installs the compiler, once. What has been compiled is kept in
.venv-workloads/cache until an argument, the slice, the packages or the program that compiles change.
""",
)
@options.workload
@options.flag("--largest-batch", "find the largest per_device_batch_size that fits, from the given one on")
def fit(
    *,
    recipe: str,
    team: str | None,
    group: str | None,
    slices: int,
    settings: tuple[str, ...],
    largest_batch: bool,
) -> int:
    """Compiles the training step of a run on this machine, with the compiler and for the topology that it would run
    with, and says whether it fits the memory of a chip, what takes the most of it, and the least time that a step can
    take. What does not fit is compiled again with a smaller batch, another remat_policy and more sharding, each by
    itself. No TPU and no cluster is needed; a model of 8 billion parameters takes a few minutes.
    """
    run = run_of(project.load_and_warn(), recipe, team=team, group=group, slices=slices, settings=settings)
    if not can_be_compiled(run.recipe):
        able = ", ".join(item.name for item in all_recipes() if can_be_compiled(item))
        raise WrongArgument(f"recipe {run.recipe.name} has no training step that can be compiled here; use {able}")
    with Progress() as progress:
        asked = _Asked(Compiler(), progress)
        try:
            return _find_largest_batch(run, asked) if largest_batch else _fit(run, asked)
        except BadManifest as bad:
            raise WrongArgument("\n".join(f"invalid: {line}" for line in str(bad).splitlines())) from None


class _Asked:
    """Asks the compiler with the progress on the screen."""

    def __init__(self, compiler: Compiler, progress: Progress) -> None:
        self._compiler, self._progress = compiler, progress
        self.line = progress.line

    def answer(self, run: Run, what: str = "") -> tuple[Question, Answer]:
        """Raises BadManifest when the run is not possible, and Failed as Compiler.answer."""
        question = question_of(run)
        doing = f"{what or run.recipe.name} for {verdict.of_run(run)}"
        self._progress.doing(doing)
        try:
            return question, self._compiler.answer(
                question, run.recipe.folder, doing=lambda detail: self._progress.doing(doing, detail)
            )
        finally:
            self._progress.doing("")


def _fit(run: Run, asked: _Asked) -> int:
    question, answer = asked.answer(run)
    asked.line(f"{run.recipe.name} on {verdict.of_run(run)}")
    for line in verdict.lines(run, question, answer):
        asked.line(line)
    if isinstance(answer, Compiled):
        return 0
    if isinstance(answer, Refused):
        return 2
    asked.line("What to try, each compiled by itself:")
    for smaller in alternatives.smaller_batches(run):
        if not isinstance(_try(smaller, asked), TooLarge):
            break
    for alternative in (*alternatives.other_policies(run), *alternatives.more_sharding(run)):
        _try(alternative, asked)
    return 1


def _try(alternative: Alternative, asked: _Asked) -> Answer | None:
    """The answer, None for a run that is not possible; it is printed."""
    try:
        _, answer = asked.answer(alternative.run, alternative.change)
    except BadManifest as bad:
        asked.line(f"  {alternative.change}: invalid: {str(bad).splitlines()[0]}")
        return None
    asked.line(f"  {alternative.change}: {verdict.in_one_line(alternative.run, answer)}")
    return answer


def _find_largest_batch(run: Run, asked: _Asked) -> int:
    def ask(batch: float) -> Answer:
        alternative = alternatives.with_batch(run, batch)
        _, answer = asked.answer(alternative.run, alternative.change)
        if not tried:
            asked.line(f"{run.recipe.name} on {verdict.of_run(run)}")
        asked.line(f"  {alternative.change}: {verdict.in_one_line(alternative.run, answer)}")
        tried.append(answer)
        return answer

    tried: list[Answer] = []
    batch = largest(search(alternatives.batch_of(run), ask))
    if batch is None:
        if isinstance(tried[0], Refused):
            return 2
        asked.line("No batch fits.")
        return 1
    asked.line(f"The largest {alternatives.BATCH} that fits is {batch:g}.")
    best = alternatives.with_batch(run, batch).run
    for line in verdict.lines(best, *asked.answer(best)):
        asked.line(line)
    return 0
