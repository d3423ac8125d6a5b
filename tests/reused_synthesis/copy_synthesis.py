"""Runs main.py once in a test session for each input, and copies what it wrote for every equal input after that.

Tests of the commands with Terraform synthesize the same few environments again and again, and a synthesis costs more
CPU time than Terraform's plan of a stack. Only the tools of a world of tests.rehearsal.deployed.world_of, and those of
tests/rehearsal/test_pipeline_killed.py with its builds, run this. The tests of main.py, `tpuenv rehearse` and the
builds of `tpuenv rehearse-pipeline` run main.py itself.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

# Names the folder of the test session that takes what was synthesized.
FOLDER = "TPUENV_TEST_SYNTHESES"

# Names a folder that main.py finds modules in first: a sitecustomize.py there changes what it synthesizes.
PATCHES = "TPUENV_TEST_PATCHES"

# What differs between worlds or runs and is no input of main.py: addresses, tools, folders. All other variables count,
# because main.py warns of those that are nearly settings.
_NO_INPUT = (
    *("BUILD_ID", "CDKTF_HOME", "CDKTF_OUTDIR", "COMMIT_SHA", "GOOGLE_", "HOME", "KUBECONFIG", "PATH", "PWD", "TF_"),
    *("TERRAFORM_BINARY_NAME", "TPUENV_CLUSTER_ENDPOINT", "TPUENV_FOLDER", "TPUENV_TERRAFORM", "XDG_"),
)

# What cdktf 0.21 sets for main.py: with these values the output is that of `python main.py`, as tpuenv runs it.
OF_CDKTF = {
    "CDKTF_CONTEXT_JSON": '{"cdktfRelativeModules":[]}',
    "CDKTF_CONTINUE_SYNTH_ON_ERROR_ANNOTATIONS": "true",  # no stack has error annotations
    "NODE_ENV": "production",
    "NODE_OPTIONS": "--max-old-space-size=4096",
    "SYNTH_HCL_OUTPUT": "false",
}


def main(program: str) -> int:
    """0 with the output in CDKTF_OUTDIR. Where main.py fails, its own exit code and messages, each time."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    real = [sys.executable, program]
    once = Path(variables[FOLDER], _digest(variables, Path(variables.get("TPUENV_FOLDER") or Path(program).parent)))
    with once.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not once.exists():
            partial = once.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            first = {"PYTHONPATH": variables[PATCHES]} if PATCHES in variables else {}
            synthesis = {**variables, **first, "CDKTF_OUTDIR": str(partial / "output")}
            done = subprocess.run(real, env=synthesis, capture_output=True, check=False)
            if done.returncode:
                os.execve(sys.executable, real, variables)
            (partial / "stderr").write_bytes(done.stderr)
            partial.rename(once)
    output = Path(variables["CDKTF_OUTDIR"])
    shutil.rmtree(output / "manifests", ignore_errors=True)  # main.py removes there what it does not write any more
    shutil.copytree(once / "output", output, dirs_exist_ok=True)
    sys.stderr.buffer.write((once / "stderr").read_bytes())
    return 0


def _digest(variables: dict[str, str], folder: Path) -> str:
    """Of all that main.py reads: the variables, and vars.env and fleet.yaml in their folder."""
    paths = [folder / "vars.env", folder / "fleet.yaml"]
    files = [path.read_text(encoding="utf-8") if path.exists() else None for path in paths]
    inputs = [
        (name, value)
        for name, value in sorted(variables.items())
        if not name.startswith(_NO_INPUT) and OF_CDKTF.get(name) != value
    ]
    return hashlib.sha256(json.dumps([inputs, files]).encode()).hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
