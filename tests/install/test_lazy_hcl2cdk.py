"""`cdktf_patches/lazy_hcl2cdk.cjs`, with the real CDKTF CLI and the real converter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from install.steps import ROOT, Layout

PATCH = ROOT / "cdktf_patches" / "lazy_hcl2cdk.cjs"
PRINT_LOADED = 'process.on("exit", () => console.log(Object.keys(require.cache).join("\\n")));\n'

# The bundle copies the names of a module as esbuild's __toESM does.
USES = """\
const loaded = () => Object.keys(require.cache).some((file) => file.includes("@cdktf/hcl2cdk"));
const converter = require("@cdktf/hcl2cdk");
const copied = {};
for (const name of Object.getOwnPropertyNames(converter)) {
  Object.defineProperty(copied, name, { get: () => converter[name], enumerable: true });
}
console.log(loaded(), copied.__esModule, typeof copied.convert, loaded(), typeof converter.parseProviderRequirements);
"""


def node(folder: Path, *arguments: object) -> str:
    """What Node prints, with the patch loaded."""
    # Of the setup that this Python is from: a build has the checkout elsewhere.
    (folder / "node_modules").symlink_to(Layout(root=Path(sys.prefix).parent).node_modules)
    command = [str(Path(sys.executable).with_name("node")), f"--require={PATCH}", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


@pytest.mark.slow
def test_a_command_of_cdktf_that_converts_nothing_does_not_load_the_converter(tmp_path: Path) -> None:
    (tmp_path / "loaded.cjs").write_text(PRINT_LOADED)
    (tmp_path / "cdktf.json").write_text('{"language": "python", "app": "true"}')
    cli = tmp_path / "node_modules" / "cdktf-cli" / "bundle" / "bin" / "cdktf"
    loaded = node(tmp_path, f"--require={tmp_path / 'loaded.cjs'}", cli, "output", "--skip-synth", "no-such-stack")
    assert "cmds/handlers.js" in loaded
    assert "@cdktf/hcl2cdk" not in loaded


@pytest.mark.slow
def test_who_uses_the_converter_gets_the_real_one(tmp_path: Path) -> None:
    (tmp_path / "uses.cjs").write_text(USES)
    assert node(tmp_path, "uses.cjs").startswith("false true function true function\n")
