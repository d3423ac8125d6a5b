"""The bindings' fast way: the same JSON as the plain way, and the plain way wherever the fast one does not fit."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from stacks import bindings
from stacks.bindings import BINDINGS, Binding

ROOT = Path(__file__).parent.parent.parent

# Garbage collection costs the plain way half of its time, and is no part of what it synthesizes.
PLAIN = "import gc, runpy; gc.disable(); runpy.run_path('main.py', run_name='__main__')"


def start(program: str, **settings: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JSII_", "NODE_"))}
    return subprocess.Popen(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", program],
        cwd=ROOT,
        env={**environment, "PROJECT_ID": "my-project", **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@dataclass(frozen=True, kw_only=True)
class Ended:
    code: int
    stdout: str
    stderr: str


def python(program: str, **settings: str) -> Ended:
    return end(start(program, **settings))


def end(process: subprocess.Popen[str]) -> Ended:
    stdout, stderr = process.communicate(timeout=120)
    return Ended(code=process.returncode, stdout=stdout, stderr=stderr)


@pytest.fixture(scope="module", autouse=True)
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """The plain way, which takes a quarter of a minute: started first and waited for last."""
    folder = tmp_path_factory.mktemp("plain")
    process = start(PLAIN, CDKTF_OUTDIR=str(folder), TPUENV_PLAIN_BINDINGS="1")
    yield process, folder
    process.kill()
    process.communicate()


@pytest.mark.slow
def test_only_the_resources_in_use_are_loaded_in_python_and_in_node(tmp_path: Path) -> None:
    counter = tmp_path / "a counter.cjs"
    counter.write_text(
        "process.on('exit', () => {"
        "const count = Object.keys(require('node:module')._cache).filter((file) => file.includes('provider-')).length;"
        "if (count) require('node:fs').writeFileSync(process.env.COUNT, String(count)); });"
    )
    program = (
        "import sys, runpy\n"
        "try: runpy.run_path('main.py', run_name='__main__')\n"
        "except SystemExit: print(sum(name.startswith('cdktf_cdktf_provider_') for name in sys.modules))"
    )
    settings = {
        "NODE_OPTIONS": f'--require "{counter}"',
        "COUNT": str(tmp_path / "count"),
        "CDKTF_OUTDIR": str(tmp_path / "out"),
    }
    done = python(program, **settings)
    assert done.code == 0, done.stderr
    in_python, in_node = int(done.stdout), int((tmp_path / "count").read_text())
    assert 20 < in_python < 100
    assert 20 < in_node < 200


@pytest.mark.slow
def test_nothing_is_left_in_the_process_environment() -> None:
    program = "import os; before = dict(os.environ); import stacks; assert dict(os.environ) == before"
    done = python(program, NODE_OPTIONS="--max-old-space-size=2048")
    assert done.code == 0, done.stderr
    assert done.stderr == ""


@pytest.mark.slow
def test_a_submodule_that_nobody_imported_can_be_asked_of_its_package() -> None:
    program = (
        "import stacks, cdktf_cdktf_provider_google as google, cdktf_cdktf_provider_helm as helm\n"
        "print(google.pubsub_topic.PubsubTopic.__name__, hasattr(google, 'no_such_resource'))\n"
        "from cdktf_cdktf_provider_helm import *\n"
        "print(release.Release is helm.release.Release, data_helm_template.__name__)"
    )
    done = python(program)
    assert done.stdout.split() == ["PubsubTopic", "False", "True", "cdktf_cdktf_provider_helm.data_helm_template"], done


@pytest.mark.slow
def test_a_type_that_nobody_imported_is_loaded_when_the_kernel_returns_it() -> None:
    program = (
        "import sys, stacks, jsii\n"
        "from cdktf_cdktf_provider_google.pubsub_topic import PubsubTopic\n"
        "from jsii._kernel.types import ObjRef\n"
        "assert 'cdktf_cdktf_provider_google.storage_bucket' not in sys.modules\n"
        "returned = ObjRef(ref='@cdktf/provider-google.storageBucket.StorageBucketCorsOutputReference@10001')\n"
        "print(type(jsii._reference_map.resolve_reference(jsii._runtime.kernel, returned)).__name__)"
    )
    done = python(program)
    assert done.stdout.strip() == "StorageBucketCorsOutputReference", done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("binding", BINDINGS, ids=lambda binding: binding.package)
def test_every_submodule_of_a_binding_is_known_by_the_name_that_its_javascript_has(binding: Binding) -> None:
    import jsii._reference_map as reference_map

    folder = Path(sys.modules[binding.package].__path__[0])
    with tarfile.open(next((folder / "_jsii").glob("*.jsii.tgz"))) as archive:
        file = archive.extractfile("package/lib/lazy-index.js")
        assert file is not None
        theirs = set(re.findall(r"defineProperty\(exports, '(\w+)'", file.read().decode()))
    ours = {
        name.rpartition(".")[2] for name in reference_map._submodule_fqn_map if name.startswith(f"{binding.assembly}.")
    }
    assert theirs == ours


def test_another_version_is_warned_of_and_loaded_the_plain_way(monkeypatch: pytest.MonkeyPatch) -> None:
    package = "cdktf_cdktf_provider_helm"
    monkeypatch.delitem(sys.modules, package)
    with pytest.warns(RuntimeWarning, match=r"cdktf_cdktf_provider_helm is not version 0\.0\.1.*plain"):
        assert not bindings._put_root(Binding(package=package, assembly="@cdktf/provider-helm", version="0.0.1"))
    assert package not in sys.modules


def test_another_jsii_is_warned_of_and_loaded_the_plain_way(monkeypatch: pytest.MonkeyPatch) -> None:
    (helm,) = (binding for binding in BINDINGS if binding.package.endswith("helm"))
    monkeypatch.delitem(sys.modules, helm.package)
    monkeypatch.setattr(bindings, "JSII_VERSION", "9.9.9")
    with pytest.warns(RuntimeWarning, match=r"jsii is not version 9\.9\.9"):
        assert not bindings._put_root(helm)
    assert helm.package not in sys.modules


@pytest.mark.slow
def test_cdktf_imported_too_early_is_warned_of_and_works() -> None:
    done = python(
        "import warnings; warnings.simplefilter('always'); import cdktf, stacks; "
        "from cdktf_cdktf_provider_helm.release import Release; print(Release.__name__)"
    )
    assert done.stdout.strip() == "Release"
    assert "cdktf was imported before stacks" in done.stderr


def test_the_hook_waits_for_the_runtime_index_of_every_binding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NODE_OPTIONS", raising=False)
    monkeypatch.setenv("JSII_RUNTIME_PACKAGE_CACHE_ROOT", str(tmp_path))
    for binding in BINDINGS:
        with pytest.warns(RuntimeWarning, match=r"is not filled .*make setup"):
            assert "lazy_index" not in bindings._kernel_environment(lazy=True)["NODE_OPTIONS"]
        folder = tmp_path / binding.assembly / binding.version / "0123"
        folder.mkdir(parents=True)
        (folder / bindings.RUNTIME_INDEX).touch()
    assert "lazy_index" in bindings._kernel_environment(lazy=True)["NODE_OPTIONS"]
    assert "lazy_index" not in bindings._kernel_environment(lazy=False)["NODE_OPTIONS"]


def test_a_package_cache_that_is_not_there_is_left_to_jsii(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JSII_RUNTIME_PACKAGE_CACHE_ROOT", raising=False)
    monkeypatch.setattr(bindings, "CACHE", tmp_path / "missing")
    with pytest.warns(RuntimeWarning, match=r"cannot be written"):
        assert "JSII_RUNTIME_PACKAGE_CACHE_ROOT" not in bindings._kernel_environment(lazy=True)


def test_the_hook_takes_the_lazy_index_only_where_a_provider_has_one(tmp_path: Path) -> None:
    hook = tmp_path / "a folder" / "lazy_index.cjs"
    hook.parent.mkdir()
    hook.write_bytes(bindings.HOOK.read_bytes())
    for package, files in {
        "@cdktf/provider-both": ("index", "lazy-index"),
        "@cdktf/provider-one": ("index",),
        "@other/provider-both": ("index", "lazy-index"),
    }.items():
        library = tmp_path / "node_modules" / package / "lib"
        library.mkdir(parents=True)
        (library.parent / "package.json").write_text('{"main": "lib/index.js"}')
        for file in files:
            (library / f"{file}.js").write_text(f"module.exports = '{file}';")
    program = "for (const name of ['@cdktf/provider-both', '@cdktf/provider-one', '@other/provider-both'])"
    node = subprocess.run(
        [bindings.NODE, "-e", f"{program} console.log(require(name));"],
        cwd=tmp_path,
        env={**os.environ, "NODE_OPTIONS": f"--require {json.dumps(str(hook))}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert node.stdout.split() == ["lazy-index", "index", "index"]


@pytest.mark.slow
def test_the_fast_way_synthesizes_the_same_bytes_as_the_plain_way(
    plain: tuple[subprocess.Popen[str], Path], tmp_path: Path
) -> None:
    fast = python("import runpy; runpy.run_path('main.py', run_name='__main__')", CDKTF_OUTDIR=str(tmp_path))
    process, folder = plain
    slow = end(process)
    assert (fast.code, slow.code) == (0, 0), fast.stderr + slow.stderr
    assert len(list(tmp_path.glob("stacks/*/cdk.tf.json"))) >= 5
    assert synthesized(tmp_path) == synthesized(folder)


def synthesized(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
