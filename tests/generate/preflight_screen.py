"""What docs/preflight.md shows: a project of the fake Google without TPU quota."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.google_project import environment, google_project, sections_of
from tpuenv.preflight.report_text import lines

_NO_QUOTA = {"dimensionsInfos": [{"dimensions": {"tpu_family": "CT6E"}, "details": {"value": "0"}}]}
_ONE_GROUP = {"spec": {"rules": [{"values": {"allowedValues": ["in:northamerica-locations"]}}]}}


def preflight_screen() -> str:
    """The report of the default environment."""
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
        google_project(Path(folder), patch) as google,
    ):
        google.reply("TPUS-PER-TPU-FAMILY", _NO_QUOTA)
        google.reply("gcp.resourceLocations", _ONE_GROUP)
        shown = [line for line, _ in lines(sections_of(environment("")))]
    return "\n".join(["```text", "$ tpuenv preflight", *shown, "```"])
