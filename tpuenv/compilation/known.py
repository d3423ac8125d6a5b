"""What has been compiled for a run before, in a line, for those who submit it."""

from __future__ import annotations

from manifests.render import Run
from tpuenv.compilation import verdict
from tpuenv.compilation.compiler import Compiler
from tpuenv.compilation.question import can_be_compiled, question_of


def known(run: Run, compiler: Compiler | None = None) -> str | None:
    """The verdict that `tpuenv fit` came to for this run, or that there is none. Nothing is compiled.

    None for a recipe without a training step to compile. Raises BadManifest when the run is not possible.
    """
    if not can_be_compiled(run.recipe):
        return None
    answer = (compiler or Compiler()).known(question_of(run))
    if answer is None:
        fit = f"`tpuenv fit {run.recipe.name}`, with the same options,"
        return f"not compiled for {verdict.of_run(run)}: {fit} says whether it fits"
    return f"compiled for {verdict.of_run(run)}: {verdict.in_one_line(run, answer)}"
