"""vars.env -> Settings: every key, its default, and what its value may be."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import IPv4Network
from typing import Any

from environment.members import Member, email_addresses, members
from environment.problems import Problem
from environment.settings import values
from environment.settings.file import VarsFile
from environment.tpu import UnknownTpuType, slice_for
from vocabulary.printable import quoted

LONGEST_VALUE = 512
_LONGEST_LIST = 32_768
MOST_SLICES = 10_000  # of one pool group


def _key(default: str, parse: Callable[[str], object]) -> dict[str, Any]:
    """A key whose empty value means `default`."""
    return {"default": default, "parse": parse}


def _optional(parse: Callable[[str], object], *, unset: object = "") -> dict[str, Any]:
    """A key that may stay empty."""
    return {"default": "", "parse": lambda text: parse(text) if text else unset}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one environment: a field for each key of vars.env, named as the key in lower case.

    Four describe the fleet where there is no fleet.yaml, and have their defaults where there is one. Nothing but
    environment/fleet/model.py reads them, and they do not count when two settings are compared.
    """

    project_id: str = field(metadata=_key("", values.project_id))
    project_number: str = field(metadata=_optional(values.project_number))
    resource_prefix: str = field(metadata=_key("tpu", values.resource_prefix))
    region: str = field(metadata=_key("us-east5", values.region))
    zone: str = field(metadata=_key("us-east5-b", values.zone))
    tensorboard_region: str = field(metadata=_key("us-central1", values.region))
    cluster_mode: str = field(metadata=_key("standard", values.one_of("standard", "autopilot")))
    tpu_type: str = field(metadata=_key("v6e-16", lambda text: slice_for(text).tpu_type), compare=False)
    num_tpu_pools: int = field(metadata=_key("2", values.count(1, MOST_SLICES)), compare=False)
    namespace: str = field(metadata=_key("tpu-training", values.namespace), compare=False)
    members: tuple[Member, ...] = field(
        metadata=_optional(members, unset=()) | {"longest": _LONGEST_LIST}, compare=False
    )
    rbac_security_group: str = field(metadata=_optional(values.security_group))
    cpu_zone: str = field(metadata=_optional(values.standard_zone))
    cpu_machine_type: str = field(metadata=_key("n2-standard-8", values.cpu_machine))
    cpu_min_nodes: int = field(metadata=_key("1", values.count(1, 1_000)))
    cpu_max_nodes: int = field(metadata=_key("4", values.count(1, 1_000)))
    subnet_cidr: IPv4Network = field(metadata=_key("10.0.0.0/20", values.network(shortest=8, longest=29)))
    pods_cidr: IPv4Network = field(metadata=_key("10.4.0.0/14", values.network(shortest=9, longest=28)))
    services_cidr: IPv4Network = field(metadata=_key("10.1.0.0/20", values.network(shortest=16, longest=27)))
    control_plane_cidr: IPv4Network | None = field(
        metadata=_optional(values.network(shortest=28, longest=28), unset=None)
    )
    release_channel: str = field(metadata=_key("REGULAR", values.one_of("RAPID", "REGULAR", "STABLE", "EXTENDED")))
    gke_version: str = field(metadata=_optional(values.gke_version))
    maintenance_start: str = field(metadata=_key("03:00", values.time_of_day))
    maintenance_exclusion_start: datetime | None = field(metadata=_optional(values.instant, unset=None))
    maintenance_exclusion_end: datetime | None = field(metadata=_optional(values.instant, unset=None))
    hold_queues: bool = field(metadata=_key("false", values.true_or_false))
    deletion_protection: bool = field(metadata=_key("true", values.true_or_false))
    destroy_data: bool = field(metadata=_key("false", values.true_or_false))
    egress: str = field(metadata=_key("internet", values.one_of("internet", "google")))
    allowed_images: tuple[str, ...] = field(
        metadata=_optional(values.image_prefixes, unset=()) | {"longest": _LONGEST_LIST}
    )
    data_access_logs: bool = field(metadata=_key("false", values.true_or_false))
    xpk_compatibility: bool = field(metadata=_key("false", values.true_or_false))
    observability: bool = field(metadata=_key("true", values.true_or_false))
    alert_emails: tuple[str, ...] = field(metadata=_optional(email_addresses, unset=()) | {"longest": _LONGEST_LIST})
    tf_state_bucket: str = field(metadata=_optional(values.bucket))
    tf_state_prefix: str = field(metadata=_optional(values.state_prefix))
    chart_repository: str = field(metadata=_optional(values.chart_repository))
    image_registry: str = field(metadata=_optional(values.image_registry))
    build_repository: str = field(metadata=_optional(values.build_repository))
    build_branch: str = field(metadata=_key("main", values.branch))
    builder_image: str = field(metadata=_optional(values.pinned_image))

    @property
    def autopilot(self) -> bool:
        """Whether GKE makes the nodes, so that there are no node pools of this environment."""
        return self.cluster_mode == "autopilot"

    @property
    def zone_of_cpu_nodes(self) -> str:
        """CPU_ZONE, or ZONE, or where that is an AI zone the standard zone it belongs to."""
        return self.cpu_zone or values.parent_zone(self.zone)

    @property
    def build_region(self) -> str:
        """Where triggers and builds are: where the repository is connected; without a repository, REGION."""
        return values.repository_parts(self.build_repository).get("location") or self.region


KEYS = tuple(setting.name.upper() for setting in dataclasses.fields(Settings))
KEYS_OF_THE_FLEET = ("TPU_TYPE", "NUM_TPU_POOLS", "NAMESPACE", "MEMBERS")  # fleet.yaml says these things in another way
_REQUIRED = "PROJECT_ID"
_PLACEHOLDER = "my-project"  # for the required key, so that the rest can be checked without it


def read_settings(
    file: VarsFile, process_env: Mapping[str, str], *, fleet_file: str
) -> tuple[Settings, list[Problem], frozenset[str]]:
    """The settings, every problem of single keys, and the keys whose value is not known because of them.

    Such a key has its default in the Settings returned. They are for checking the rest, not for use. `fleet_file` is
    the name of the file that describes the fleet, or empty.
    """

    def given(key: str) -> str:
        return process_env.get(key, "").strip() or file.values.get(key, "")

    problems = list(file.problems)
    bad = {key for problem in problems for key in problem.keys}
    for key in file.values:
        if key not in KEYS:
            meant = _nearest_key(key)
            if not given(meant):
                bad.add(meant)  # misspelt, so its value is unknown; its default would only confuse the other checks
            problems.append(Problem(keys=(key,), message=_not_a_setting(meant)))
    read: dict[str, Any] = {}
    for item in dataclasses.fields(Settings):
        key, parse = item.name.upper(), item.metadata["parse"]
        longest = item.metadata.get("longest", LONGEST_VALUE)
        if fleet_file and key in KEYS_OF_THE_FLEET:
            problems += _beside_a_fleet(key, file, process_env, fleet_file)
            read[item.name] = parse(item.metadata["default"])
            continue
        default = item.metadata["default"] or (_PLACEHOLDER if key == _REQUIRED else "")
        text = given(key)
        message = "" if key in bad else _what_is_wrong(key, text, parse, longest)
        if message:
            problems.append(Problem(keys=(key,), message=message))
            bad.add(key)
        read[item.name] = parse(default if key in bad or not text else text)
    return Settings(**read), problems, frozenset(bad)


def _beside_a_fleet(key: str, file: VarsFile, process_env: Mapping[str, str], fleet_file: str) -> Iterator[Problem]:
    in_file, in_process = file.values.get(key, ""), process_env.get(key, "").strip()
    ways = [f"leave it empty in vars.env ({key}=)"] if in_file else []
    ways += [f"unset {key} in your shell"] if in_process else []
    if ways:
        yield Problem(
            keys=(key,),
            message=f"{quoted(in_process or in_file)} is not used, because {fleet_file} says which TPUs and teams "
            f"there are; {' and '.join(ways)}, or remove {fleet_file}",
        )


def _what_is_wrong(key: str, text: str, parse: Callable[[str], object], longest: int) -> str:
    if not text:
        return "is required; set it to the id of your Google Cloud project" if key == _REQUIRED else ""
    if len(text) > longest:
        return f"{quoted(text)} is {len(text)} characters long; it may have {longest} at most"
    try:
        parse(text)
    except UnknownTpuType as error:
        return str(error)
    except ValueError as error:
        return f"{quoted(text)} {error}"
    return ""


def _nearest_key(key: str) -> str:
    return next(iter(difflib.get_close_matches(key.upper()[:64], KEYS, n=1, cutoff=0.7)), "")


def _not_a_setting(meant: str) -> str:
    return (
        f"is not a setting; did you mean {meant}?"
        if meant
        else "is not a setting; remove it (docs/settings.md lists the settings)"
    )
