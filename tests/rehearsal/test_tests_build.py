"""The tests of a pull request, where its build runs them: with the builder image's programs and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from environment.project import ROOT
from rehearsal.cloudbuild import workspace
from rehearsal.cloudbuild.config import read
from rehearsal.cloudbuild.images import Images
from tests.passed_tests import PASSED, passed_tests

# The first process of a network of its own: its loopback is down at first. SIOCSIFFLAGS, IFF_UP | IFF_RUNNING.
LOOPBACK_UP = """
import fcntl, os, socket, struct, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
    fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 0x41))
os.execvp(sys.argv[1], sys.argv[1:])
"""

# Root in a user namespace may make a network; the user in the one below it is nobody special, not even on this machine.
OFFLINE = ["unshare", "--map-root-user", "--net", sys.executable, "-c", LOOPBACK_UP]
AS_A_USER = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]


@pytest.fixture(scope="module")
def isolated() -> list[str]:
    """What a command is put behind to have no network and no rights beyond a user's."""
    command = [*OFFLINE, *AS_A_USER]
    try:
        done = subprocess.run([*command, "id", "-u"], capture_output=True, text=True)
    except OSError as error:
        pytest.skip(f"unshare of util-linux is not on this machine: {error}")
    if done.stdout != "1000\n":
        pytest.skip(f"this machine lets nobody make a user and a network namespace: {done.stderr.strip()}")
    return command


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not on the PATH")
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not on the PATH")
def test_the_tests_of_a_pull_request_pass_offline_as_a_user_with_the_programs_of_the_image(
    isolated: list[str], tmp_path: Path
) -> None:
    workspace.copy(ROOT, tmp_path / "workspace", changed={})
    step = next(step for step in read(ROOT / "cloudbuild" / "test.yaml").steps if step.id_ == "test")
    terraform = str(Path(str(shutil.which("terraform"))).absolute())
    path = Images(builder="").path(tmp_path / "bin", terraform=terraform)
    (tmp_path / "home").mkdir()
    passed = tmp_path / "passed"
    passed.touch()
    done = subprocess.run(
        # In one process: to report each test to another takes a tenth of the time.
        [*isolated, sys.executable, *step.args, "-n", "0"],
        cwd=tmp_path / "workspace",
        env={
            "PATH": path,
            "HOME": str(tmp_path / "home"),
            "TMPDIR": str(tmp_path),
            "LANG": "C.UTF-8",
            PASSED: str(passed),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-10_000:]
    with passed_tests().open("a", encoding="utf-8") as file:
        file.write(passed.read_text(encoding="utf-8"))
