"""Charts: those that are known by name and version, and local ones, whose programs are run, not faked.

Convention of a local chart: `templates/*.yaml` may hold a Job with the annotation `helm.sh/hook`, and names its
program in the same file with `.Files.Get "files/<program>"`. Nothing is templated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from rehearsal.kubernetes.resources import JOBSET, KUEUE, Resource
from rehearsal.terraform.resource_type import Client, Refusal


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart as loaded. `programs`: what runs at which hook event; `pods`: the key of the values that has the node
    selector and the tolerations of its pods, "" for the values themselves.
    """

    name: str
    version: str
    app_version: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    programs: dict[str, str] = field(default_factory=dict)
    installs: tuple[Resource, ...] = ()
    keeps_crds: bool = False
    pods: str = ""


# The published charts that exist, as far as this project may use them.
_PUBLISHED = {
    "kueue": Chart(name="kueue", version="", installs=tuple(KUEUE), pods="controllerManager"),
    "jobset": Chart(name="jobset", version="", installs=tuple(JOBSET), keeps_crds=True, pods="controller"),
}
# By version, their digests: https://github.com/kubernetes/k8s.io/pull/9831, 9856, 9006 and 9456.
_VERSIONS = {
    "kueue": {
        "0.19.1": "sha256:b8d0ba07db35275bc3c4702a7152db544748c83647e5d7949a2b20c2cc8f7642",
        "0.19.2": "sha256:ab436c33ef6c6b9b9e95b633e618bca0e0e436d6581d3b27bd12fc8a8026ab34",
    },
    "jobset": {
        "0.11.0": "sha256:04c41764639c3d1f72adb7cf8bf619caae656c306856ad3b1b0f528e26ff03ec",
        "0.12.0": "sha256:02808a890a0b0e03a1d3bf5959e2f562b3b47c15e446bbba358c1d24e1f81b24",
    },
}
_UPSTREAM = "oci://registry.k8s.io"


def published(name: str) -> Chart | None:
    """The published chart of this name, without a version."""
    return _PUBLISHED.get(name)


def load(client: Client, *, chart: str, repository: str, version: str) -> Chart:
    """The chart that a release names; raises Refusal when there is none."""
    if chart.startswith((".", "/")) or (not repository and "/" in chart):
        return _local(_found(client, chart))
    chart, _, digest = chart.partition("@")
    known = published(chart)
    where = f"{repository.removeprefix('oci://')}/{chart}:{version or 'latest'}"
    right_place = not repository.startswith(_UPSTREAM) or repository == f"{_UPSTREAM}/{chart}/charts"
    if not repository or known is None or not right_place or (version and version not in _VERSIONS[chart]):
        raise Refusal(
            "Error locating chart",
            f'Unable to locate chart {chart}: failed to perform "FetchReference" on source: {where}: not found',
        )
    version = version or [*_VERSIONS[chart]][-1]
    if digest and digest != _VERSIONS[chart][version]:
        raise Refusal(
            "Error locating chart",
            f"Unable to locate chart oci://{where.rpartition(':')[0]}@{digest}: "
            f"chart reference digest mismatch: {_VERSIONS[chart][version]} is not {digest}",
        )
    return replace(known, version=version, app_version=f"v{version}")


def _found(client: Client, chart: str) -> Path:
    """A relative path counts from the folder of the stack; which stack it is is not known, but charts are copies."""
    for stack in sorted(client.place.stacks.glob("*")) if not Path(chart).is_absolute() else [Path("/")]:
        if (stack / chart / "Chart.yaml").is_file():
            return stack / chart
    raise Refusal("Error locating chart", f"Unable to locate chart {chart}: path {chart!r} not found")


def _local(folder: Path) -> Chart:
    about = yaml.safe_load((folder / "Chart.yaml").read_text())
    values = folder / "values.yaml"
    programs: dict[str, str] = {}
    for template in sorted((folder / "templates").glob("*.yaml")):
        text = template.read_text()
        program = re.search(r'\.Files\.Get "(files/[^"]+)"', text)
        for document in re.split(r"^---$", text, flags=re.M):
            hooks = re.search(r"^ +\"?helm\.sh/hook\"?: \"?([\w,-]+)", document, re.M)
            if program is not None and hooks is not None and re.search(r"^kind: Job$", document, re.M):
                content = (folder / program.group(1)).read_text()
                programs.update(dict.fromkeys(hooks.group(1).split(","), content))
    return Chart(
        name=str(about["name"]),
        version=str(about["version"]),
        app_version=str(about.get("appVersion", "")),
        values=(yaml.safe_load(values.read_text()) or {}) if values.is_file() else {},
        programs=programs,
    )
