"""Fill in the ${NAMES} of the workloads' YAML with the facts of an environment."""

from __future__ import annotations

from pathlib import Path
from string import Template

from environment import Environment, PoolGroup, Team
from vocabulary.keys import LOCAL_QUEUE, POOL_GROUP_LABEL, TEAM_ACCOUNT

WORKLOADS = Path(__file__).parent

# Of a team that states none: in the middle, so that a job can be put before or behind others by its label.
USUAL_PRIORITY = "medium"


def render(environment: Environment, folder: Path) -> tuple[Path, ...]:
    """Write `{folder}/{team}/{group}/{workload}.yaml` for each team, pool group it may use, and workload; the paths.

    Those of an earlier run that are not described any more go. A name in a manifest that nothing provides is a
    KeyError: a mistake in this repo, never of a user.
    """
    written = []
    for template in sorted(WORKLOADS.glob("*/*.yaml")):
        workload = template.parent.name
        for team in environment.teams:
            for group in (group for group in environment.groups if group.name in team.pools):
                path = folder / team.name / group.name / f"{workload}.yaml"
                path.parent.mkdir(parents=True, exist_ok=True)
                text = Template(template.read_text(encoding="utf-8"))
                path.write_text(text.substitute(_names(environment, team, group, workload)), encoding="utf-8")
                written.append(path)
    _clear(folder, written)
    return tuple(written)


def _clear(folder: Path, written: list[Path]) -> None:
    """What a team or pool group that is gone left there could be submitted still. Other files may be somebody's."""
    workloads = {path.parent.name for path in WORKLOADS.glob("*/*.yaml")}
    for path in folder.glob("*/*/*.yaml"):
        if path.stem in workloads and path not in written:
            path.unlink()
            for above in (path.parent, path.parent.parent):
                if not any(above.iterdir()):
                    above.rmdir()


def _names(environment: Environment, team: Team, group: PoolGroup, workload: str) -> dict[str, str]:
    slice_ = group.slice
    return {
        "NAMESPACE": team.name,
        "QUEUE": LOCAL_QUEUE,
        "PRIORITY": team.priority or USUAL_PRIORITY,
        "SERVICE_ACCOUNT": TEAM_ACCOUNT,
        "BUCKET": environment.names.bucket(team.name),
        "IMAGE": f"{environment.names.registry_url}/{workload}",
        "POOL_GROUP_LABEL": POOL_GROUP_LABEL,
        "POOL_GROUP": group.name,
        "TPU_TYPE": slice_.tpu_type,
        "ACCELERATOR": slice_.accelerator,
        "TOPOLOGY": slice_.topology,
        "HOSTS": str(slice_.hosts),
        "CHIPS_PER_HOST": str(slice_.chips_per_host),
        "CHIPS": str(slice_.chips),
        "SLICES": str(group.slices),
    }
