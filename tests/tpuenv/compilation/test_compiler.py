"""The process that compiles, the answers that are kept, and the command around them."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests.fleets import one_group
from tests.loading import VALID
from tests.synthesis import HERE
from tests.tpuenv.compilation.ground import ANSWERS, RECIPE, answering, recorded, run, workloads
from tpuenv.compilation import compiler as module
from tpuenv.compilation.compiler import Compiler
from tpuenv.compilation.known import known
from tpuenv.compilation.question import question_of
from tpuenv.failure import Failed
from tpuenv.main import main

QUESTION = question_of(run())

# Starts another process, writes a file into its folder, prints both processes' ids, and waits for ever.
ENDLESS = """
    import os, pathlib, subprocess, sys, time
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    pathlib.Path("dump").write_text("begun")
    print('{"doing": "%d %d %s"}' % (os.getpid(), child.pid, os.getcwd()), flush=True)
    time.sleep(3600)
"""


def ask(compiler: Compiler, doing: Callable[[str], None] = lambda _: None) -> object:
    return compiler.answer(QUESTION, RECIPE.folder, doing=doing)


def times_compiled(compiler: Compiler) -> int:
    file = compiler.workloads / "bin" / "ran"
    return len(file.read_text()) if file.exists() else 0


@pytest.fixture
def fitting(tmp_path: Path) -> Compiler:
    return Compiler(workloads(tmp_path / "workloads", answering("fits")))


def test_an_answer_is_kept_and_what_the_compiler_does_is_shown(fitting: Compiler) -> None:
    shown: list[str] = []
    assert fitting.known(QUESTION) is None
    assert ask(fitting, shown.append) == ask(fitting, shown.append) == fitting.known(QUESTION) == recorded("fits")
    assert (shown, times_compiled(fitting)) == (["compiling"], 1)


@pytest.mark.nested_too_deeply
@pytest.mark.parametrize("damage", ["", "{", "[]", '{"question": 1, "answer": 2}', "\0" * 100, "[" * 100_000])
def test_a_damaged_answer_is_compiled_again(fitting: Compiler, damage: str) -> None:
    ask(fitting)
    (entry,) = (fitting.workloads / "cache" / "fit").iterdir()
    whole = entry.read_bytes()
    entry.write_text(damage)
    assert fitting.known(QUESTION) is None
    assert ask(fitting) == recorded("fits")
    assert (entry.read_bytes(), times_compiled(fitting)) == (whole, 2)


def test_an_answer_cut_off_anywhere_is_none(fitting: Compiler) -> None:
    ask(fitting)
    (entry,) = (fitting.workloads / "cache" / "fit").iterdir()
    whole = entry.read_bytes()
    for end in range(0, len(whole), 50):
        entry.write_bytes(whole[:end])
        assert fitting.known(QUESTION) is None


def test_a_cache_that_cannot_be_written_is_no_error(fitting: Compiler) -> None:
    (fitting.workloads / "cache").write_text("not a folder")
    assert ask(fitting) == recorded("fits")


def test_without_the_packages_there_is_one_line_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(Failed, match=r"^the compiler is not installed in none; `make setup-workloads` installs it"):
        ask(Compiler(tmp_path / "none"))


def test_packages_of_another_lock_are_not_compiled_with(fitting: Compiler) -> None:
    (libtpu,) = fitting.workloads.glob("lib/*/site-packages/libtpu-*")
    libtpu.rename(libtpu.with_name("libtpu-0.0.1.dist-info"))
    with pytest.raises(Failed, match=r"workloads has no libtpu [0-9.]+, which requirements.txt names; `make setup-w"):
        ask(fitting)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("import os; os.kill(os.getpid(), 9)", "the compiler was killed, most likely because this machine ran out of"),
        (
            "import os, sys; print('F0 check', file=sys.stderr); os.abort()",
            "was ended by SIGABRT without.*\n  F0 check",
        ),
        ("raise MemoryError('all used')", "ended with exit code 1 without(.|\n)*MemoryError: all used"),
        ("""print('{"answer": {"outcome": "fits"}}')""", r"maxtext/compile_step.py: no answer of the program that"),
        ("", "the compiler ended with exit code 0 without an answer$"),
    ],
)
def test_a_compiler_that_crashes_is_explained_and_not_kept(tmp_path: Path, program: str, message: str) -> None:
    compiler = Compiler(workloads(tmp_path / "workloads", program))
    with pytest.raises(Failed, match=message):
        ask(compiler)
    assert not (tmp_path / "workloads" / "cache").exists()


def test_a_failure_in_the_compiler_is_an_answer_that_is_not_kept(tmp_path: Path) -> None:
    answer = '{"outcome": "refused", "kind": "JaxRuntimeError", "message": "INTERNAL: no disk", "seconds": 1}'
    compiler = Compiler(workloads(tmp_path / "workloads", f"print('''{{\"answer\": {answer}}}''')"))
    ask(compiler)
    assert compiler.known(QUESTION) is None


def test_what_is_set_for_other_programs_does_not_reach_the_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XLA_FLAGS", "TPU_NAME", "JAX_PLATFORMS", "PYTHONPATH", "LIBTPU_INIT_ARGS"):
        monkeypatch.setenv(name, "of another program")
    program = """
        import os, sys
        names = [name for name, value in os.environ.items() if value == "of another program"]
        print(names, file=sys.stderr)
        raise SystemExit(3)
    """
    with pytest.raises(Failed, match=r"\n  \[\]$"):
        ask(Compiler(workloads(tmp_path / "workloads", program)))


def alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_an_interrupt_ends_the_compilers_processes_and_leaves_nothing(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    folder = workloads(tmp_path / "workloads", ENDLESS)
    settings, temporary = tmp_path / "settings", tmp_path / "temporary"
    settings.mkdir()
    temporary.mkdir()
    (settings / "vars.env").write_text((HERE / "cases" / "default.env").read_text())
    program = (
        "import sys; from pathlib import Path; from tpuenv.compilation import compiler; from tpuenv.main import main\n"
        "from tpuenv.terminal.progress import Progress\n"
        "Progress.doing = lambda self, what, detail='': print(detail, flush=True)\n"
        f"compiler.WORKLOADS = Path({str(folder)!r}); sys.exit(main(['fit', 'maxtext']))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=HERE.parent,
        env={**os.environ, "TPUENV_FOLDER": str(settings), "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        first, second, work = next(line for line in process.stdout if str(temporary) in line).split()
        assert alive(int(first)) and alive(int(second)) and Path(work, "dump").exists()
        process.send_signal(number)
        assert process.wait(timeout=60) == code
    deadline = time.monotonic() + 60
    while alive(int(first)) or alive(int(second)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert list(temporary.iterdir()) == []
    assert not (folder / "cache").exists()


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Sets the recorded answer that `tpuenv fit` gets in an environment with four v6e-16 slices."""
    settings = tmp_path / "settings"
    settings.mkdir()
    (settings / "vars.env").write_text("".join(f"{key}={value}\n" for key, value in VALID.items()))
    (settings / "fleet.yaml").write_text(one_group("type: v6e-16, slices: 4"))
    monkeypatch.setenv("TPUENV_FOLDER", str(settings))

    def use(name: str) -> None:
        monkeypatch.setattr(module, "WORKLOADS", workloads(tmp_path / name, answering(name)))

    return use


def test_the_command_says_that_a_run_fits(command: Callable[[str], None], capsys: pytest.CaptureFixture[str]) -> None:
    command("fits")
    assert main(["fit", "maxtext", "--slices", "2"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(
        "maxtext on 2 v6e-16 slices (4x4, 32 chips)\nfits: peak 26.13 of 31.24 GiB a chip (84 %)\n"
    )


def test_the_command_tries_what_could_help_each_by_itself(
    command: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    command("does-not-fit")
    assert main(["fit", "maxtext", "--slices", "2", "--set", "per_device_batch_size=4"]) == 1
    tried = capsys.readouterr().out.partition("What to try, each compiled by itself:\n")[2].splitlines()
    verdict = "does not fit: 29.69 of 15.75 GiB a chip, 13.94 GiB too much"
    assert tried[0] == f"  --set per_device_batch_size=2: {verdict}"
    assert tried[-3:] == [
        f"  --set remat_policy=custom --set decoder_layer_input=offload: {verdict}",
        f"  --set ici_tensor_parallelism=4 --set ici_fsdp_parallelism=4: {verdict}",
        f"  --set dcn_fsdp_parallelism=2: {verdict}",
    ]


def test_the_command_says_what_maxtext_refuses(
    command: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    command("assertion")
    for options in ([], ["--largest-batch"]):
        assert main(["fit", "maxtext", *options]) == 2
        refusal = "invalid: MaxText refuses it: Remat policy needs to be on list of remat policies"
        assert refusal in capsys.readouterr().out


def test_the_command_finds_the_largest_batch(
    command: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    command("fits")
    assert main(["fit", "maxtext", "--set", "per_device_batch_size=2048", "--largest-batch"]) == 0
    printed = capsys.readouterr().out
    assert "  --set per_device_batch_size=4096: fits: peak 26.13 of 31.24 GiB a chip (84 %)\n" in printed
    assert "\nThe largest per_device_batch_size that fits is 4096.\nfits: " in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["hello-tpu"], "recipe hello-tpu has no training step that can be compiled here; use maxtext\n"),
        (["maxtex"], "there is no recipe 'maxtex'; did you mean 'maxtext'?\n"),
        (
            ["maxtext", "--slices", "5"],
            "invalid: slices: '5' is not possible: pool group dev has 4 slices; use 1 to 4\n",
        ),
        (
            ["maxtext", "--set", "ici_fsdp_parallelism=3"],
            "invalid: ici_fsdp_parallelism=3 does not divide the 16 chips of a v6e-16 slice; use 1, 2, 4, 8 or 16\n",
        ),
    ],
)
@pytest.mark.parametrize("more", [[], ["--largest-batch"]])
def test_bad_input_is_refused_before_anything_is_compiled(
    command: Callable[[str], None],
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
    more: list[str],
) -> None:
    command("fits")
    assert main(["fit", *arguments, *more]) == 2
    assert capsys.readouterr().err == message
    assert times_compiled(Compiler(module.WORKLOADS)) == 0


def test_who_submits_learns_what_has_been_compiled(fitting: Compiler) -> None:
    assert known(run(), fitting) == (
        "not compiled for 1 v6e-16 slice (4x4, 16 chips): "
        "`tpuenv fit maxtext`, with the same options, says whether it fits"
    )
    ask(fitting)
    assert known(run(), fitting) == (
        "compiled for 1 v6e-16 slice (4x4, 16 chips): fits: peak 26.13 of 31.24 GiB a chip (84 %)"
    )


@pytest.fixture(scope="module")
def compile_step() -> ModuleType:
    """The recipe's program as a module, without the packages that it compiles with."""
    spec = importlib.util.spec_from_file_location("compile_step", RECIPE.folder / "compile_step.py")
    assert spec is not None and spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program


@pytest.mark.parametrize(
    ("text", "required", "available"),
    [
        (
            "RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO temporaries (29.69G) "
            "exceeds available HBM (15.75G). HLO module: jit_train_step.",
            29.69,
            15.75,
        ),
        (
            "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. "
            "Used 20.12G of 15.75G hbm. Exceeded hbm capacity by 4.37G.",
            20.12,
            15.75,
        ),
    ],
)
def test_the_sizes_are_read_from_the_compilers_error(
    compile_step: ModuleType, text: str, required: float, available: float
) -> None:
    assert compile_step._of_error(RuntimeError(text)) == {
        "outcome": "too large",
        "required_bytes": round(required * 2**30),
        "available_bytes": round(available * 2**30),
    }


def test_what_is_in_memory_is_read_from_what_the_compiler_writes(
    compile_step: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ANSWERS)
    assert compile_step._parts() == [
        {"bytes": 469762048, "name": "parameters"},
        {"bytes": 469762048, "name": "optimizer state"},
        {"bytes": 131072, "name": "batch"},
        {
            "bytes": 8589934592,
            "name": "temporary",
            "shape": "bf16[32,8,4096,4096]",
            "operation": "vmap(static_sparsity_splash)/jit(_splash_attention)/splash_mha_fwd_segmented_residuals/"
            "splash_mha_fwd_segmented_residuals/pallas_call",
        },
        {"bytes": 8192, "name": "temporary", "shape": "bf16[4096]", "operation": ""},
    ]
    monkeypatch.chdir(tmp_path)
    assert compile_step._parts() == []
