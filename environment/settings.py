"""vars.env -> Settings: every key, its default, its type, and what Google allows in it."""

from __future__ import annotations

import dataclasses
import difflib
import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from environment.cpu import UnknownCpuMachineType, cpu_machine_type
from environment.problems import Problem, quoted
from environment.tpu import UnknownTpuType, slice_for
from environment.vars_file import VarsFile

Network = ipaddress.IPv4Network

MAX_TPU_POOLS = 10_000
MAX_CPU_NODES = 1_000


def _project_id(text: str) -> str:
    if ":" in text:
        raise ValueError("is a domain-scoped project, whose id cannot be part of a bucket name; use another project")
    return _matching(
        text,
        r"[a-z][a-z0-9-]{4,28}[a-z0-9]",
        "is not a project id: 6 to 30 lower-case letters, digits and hyphens, a letter first and no hyphen last; "
        "`gcloud projects list` shows yours",
    )


def _project_number(text: str) -> str:
    return text and _matching(
        text,
        "[1-9][0-9]{4,18}",
        "is not a project number; `gcloud projects describe PROJECT_ID` shows it, or leave it empty",
    )


def _prefix(text: str) -> str:
    return _matching(
        text,
        "[a-z]([a-z0-9-]*[a-z0-9])?",
        "must be lower-case letters, digits and hyphens, a letter first, no hyphen last",
    )


def _region(text: str) -> str:
    if re.fullmatch(_ZONE, text):
        raise ValueError(f"is a zone; its region is '{text.rsplit('-', 1)[0]}'")
    return _matching(text, _REGION, "is not a region; write one such as us-east5")


def _zone(text: str) -> str:
    if re.fullmatch(_REGION, text):
        raise ValueError(f"is a region; write one of its zones, such as '{text}-b'")
    return _matching(text, _ZONE, "is not a zone; write one such as us-east5-b")


_REGION = "[a-z]+-[a-z]+[0-9]{1,2}"
_ZONE = f"{_REGION}-(?:[a-z]|ai[0-9]{{1,2}}[a-z])"  # us-central1-ai1a is an AI zone


def _tpu_type(text: str) -> str:
    return slice_for(text).tpu_type


def _cpu_machine_type(text: str) -> str:
    return cpu_machine_type(text).name


def _namespace(text: str) -> str:
    _matching(
        text,
        "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?",
        "is not a namespace: 1 to 63 lower-case letters, digits and hyphens, a letter or digit first and last",
    )
    taken = ("default", "kueue-system", "jobset-system")
    if text in taken or text.startswith(("kube-", "gke-", "gmp-")):
        raise ValueError("belongs to Kubernetes, GKE or this environment; choose another name")
    return text


def _count(lowest: int, highest: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if re.fullmatch("[0-9]{1,9}", text) and lowest <= int(text) <= highest:
            return int(text)
        raise ValueError(f"is not a whole number from {lowest} to {highest}")

    return parse


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text in choices:
            return text
        raise ValueError(f"is not one of {', '.join(choices)}")

    return parse


def _yes_or_no(text: str) -> bool:
    return _one_of("true", "false")(text.lower()) == "true"


def _network(shortest: int, longest: int) -> Callable[[str], Network]:
    def parse(text: str) -> Network:
        _matching(text, r"[0-9.]{7,15}/[0-9]{1,2}", "is not an IPv4 range; write one such as 10.0.0.0/20")
        try:
            network = Network(text)
        except ValueError:
            raise ValueError(_why_no_network(text)) from None
        if not shortest <= network.prefixlen <= longest:
            size = f"/{shortest}" if shortest == longest else f"from /{shortest} to /{longest}"
            raise ValueError(f"is a /{network.prefixlen}; this range must be {size}")
        return network

    return parse


def _why_no_network(text: str) -> str:
    try:
        return f"has bits set beyond its prefix; did you mean '{Network(text, strict=False)}'?"
    except ValueError:
        return "is not an IPv4 range; write one such as 10.0.0.0/20"


def _optional_network(shortest: int, longest: int) -> Callable[[str], Network | None]:
    parse = _network(shortest, longest)
    return lambda text: parse(text) if text else None


def _gke_version(text: str) -> str:
    return text and _matching(
        text,
        r"1\.[0-9]{1,3}(\.[0-9]{1,3}(-gke\.[0-9]{1,10})?)?",
        "is not a GKE version; write 1.34, 1.34.1 or 1.34.1-gke.1200, or leave it empty for the channel's default",
    )


def _time_of_day(text: str) -> str:
    return _matching(text, "([01][0-9]|2[0-3]):[0-5][0-9]", "is not a time of day (UTC); write HH:MM, such as 03:00")


def _instant(text: str) -> datetime | None:
    if not text:
        return None
    wrong = "is not an RFC 3339 time; write one such as 2030-01-31T00:00:00Z"
    _matching(text, r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(Z|[+-][0-9]{2}:[0-9]{2})", wrong)
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        raise ValueError(wrong) from None


def _bucket(text: str) -> str:
    return text and _matching(
        text,
        "[a-z0-9][a-z0-9_-]{1,61}[a-z0-9]",
        "is not a bucket name: 3 to 63 lower-case letters, digits, hyphens and underscores, a letter or digit first "
        "and last",
    )


def _state_prefix(text: str) -> str:
    return text and _matching(
        text,
        "[A-Za-z0-9][A-Za-z0-9_-]*(/[A-Za-z0-9][A-Za-z0-9_-]*)*",
        "is not a state prefix: letters, digits, hyphens and underscores, with single slashes between",
    )


def _chart_repository(text: str) -> str:
    return text and _matching(
        text,
        r"(oci|https)://[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?(/[A-Za-z0-9._-]+)*",
        "is not a chart repository; write one such as oci://mirror.example.com/charts, without a slash at the end",
    )


def _image_registry(text: str) -> str:
    return text and _matching(
        text,
        r"[a-z0-9][a-z0-9.-]*(:[0-9]{1,5})?(/[a-z0-9._-]+)*",
        "is not an image registry; write host and path such as mirror.example.com/images, without https:// or a slash "
        "at the end",
    )


def _matching(text: str, pattern: str, wrong: str) -> str:
    if re.fullmatch(pattern, text):
        return text
    raise ValueError(wrong)


def _key(default: str, parse: Callable[[str], object]) -> dict[str, Any]:
    return {"default": default, "parse": parse}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one environment: a field for each key of vars.env, named as the key in lower case."""

    project_id: str = field(metadata=_key("", _project_id))
    project_number: str = field(metadata=_key("", _project_number))
    resource_prefix: str = field(metadata=_key("tpu", _prefix))
    region: str = field(metadata=_key("us-east5", _region))
    zone: str = field(metadata=_key("us-east5-b", _zone))
    tensorboard_region: str = field(metadata=_key("us-central1", _region))
    tpu_type: str = field(metadata=_key("v6e-16", _tpu_type))
    num_tpu_pools: int = field(metadata=_key("2", _count(1, MAX_TPU_POOLS)))
    namespace: str = field(metadata=_key("tpu-training", _namespace))
    cpu_machine_type: str = field(metadata=_key("n2-standard-8", _cpu_machine_type))
    cpu_min_nodes: int = field(metadata=_key("1", _count(1, MAX_CPU_NODES)))
    cpu_max_nodes: int = field(metadata=_key("4", _count(1, MAX_CPU_NODES)))
    subnet_cidr: Network = field(metadata=_key("10.0.0.0/20", _network(8, 29)))
    pods_cidr: Network = field(metadata=_key("10.4.0.0/14", _network(9, 28)))
    services_cidr: Network = field(metadata=_key("10.1.0.0/20", _network(16, 28)))
    control_plane_cidr: Network | None = field(metadata=_key("", _optional_network(28, 28)))
    release_channel: str = field(metadata=_key("REGULAR", _one_of("RAPID", "REGULAR", "STABLE", "EXTENDED")))
    gke_version: str = field(metadata=_key("", _gke_version))
    maintenance_start: str = field(metadata=_key("03:00", _time_of_day))
    maintenance_exclusion_start: datetime | None = field(metadata=_key("", _instant))
    maintenance_exclusion_end: datetime | None = field(metadata=_key("", _instant))
    deletion_protection: bool = field(metadata=_key("true", _yes_or_no))
    destroy_data: bool = field(metadata=_key("false", _yes_or_no))
    tf_state_bucket: str = field(metadata=_key("", _bucket))
    tf_state_prefix: str = field(metadata=_key("", _state_prefix))
    chart_repository: str = field(metadata=_key("", _chart_repository))
    image_registry: str = field(metadata=_key("", _image_registry))


KEYS = tuple(each.name.upper() for each in dataclasses.fields(Settings))
_REQUIRED = "PROJECT_ID"
_STAND_IN = {_REQUIRED: "my-project"}  # so that the other settings can still be checked together


def read_settings(file: VarsFile, process_env: Mapping[str, str]) -> tuple[Settings, list[Problem], frozenset[str]]:
    """The settings, every problem of single keys, and the keys those problems are about.

    A key with a problem has its default in the Settings returned, so that the rest can be checked together: the
    result is only to be used if there are no problems.
    """
    values: dict[str, object] = {}
    problems = [_unknown_key(key) for key in file.values if key not in KEYS]
    bad = {key for problem in file.problems for key in problem.keys}
    for each in dataclasses.fields(Settings):
        key, default, parse = each.name.upper(), each.metadata["default"], each.metadata["parse"]
        text = (process_env.get(key) or file.values.get(key, "")) or default
        if key in bad and not process_env.get(key):
            text = default
        elif key == _REQUIRED and not text:
            problems.append(Problem(keys=(key,), message="is required; set it to your Google Cloud project's id"))
            bad.add(key)
        try:
            values[each.name] = parse(text or _STAND_IN.get(key, ""))
        except (UnknownTpuType, UnknownCpuMachineType, ValueError) as error:
            message = str(error) if isinstance(error, UnknownTpuType) else f"{quoted(text)} {error}"
            problems.append(Problem(keys=(key,), message=message))
            bad.add(key)
            values[each.name] = parse(_STAND_IN.get(key, default))
    return Settings(**values), problems, frozenset(bad)  # type: ignore[arg-type]


def _unknown_key(key: str) -> Problem:
    near = difflib.get_close_matches(key.upper(), KEYS, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]}?" if near else f"the keys are {', '.join(KEYS)}"
    return Problem(keys=(key,), message=f"is not a setting; {hint}")


def conflicts(settings: Settings) -> list[Problem]:
    """Settings that are right one by one and wrong together."""
    found = []
    if settings.zone.rsplit("-", 1)[0] != settings.region:
        region = settings.zone.rsplit("-", 1)[0]
        found.append(
            Problem(
                keys=("ZONE", "REGION"),
                message=f"'{settings.zone}' is not in REGION '{settings.region}'; choose one of its zones, or set "
                f"REGION={region}",
            )
        )
    if settings.cpu_min_nodes > settings.cpu_max_nodes:
        found.append(
            Problem(
                keys=("CPU_MIN_NODES", "CPU_MAX_NODES"),
                message=f"'{settings.cpu_min_nodes}' is more than CPU_MAX_NODES '{settings.cpu_max_nodes}'",
            )
        )
    if settings.destroy_data and settings.deletion_protection:
        found.append(
            Problem(
                keys=("DESTROY_DATA", "DELETION_PROTECTION"),
                message="'true' needs DELETION_PROTECTION=false as well; as long as you do not want to destroy the "
                "environment with its data, set DESTROY_DATA=false",
            )
        )
    start, end = settings.maintenance_exclusion_start, settings.maintenance_exclusion_end
    both = ("MAINTENANCE_EXCLUSION_START", "MAINTENANCE_EXCLUSION_END")
    if (start is None) != (end is None):
        set_, missing = both if start else both[::-1]
        found.append(Problem(keys=(missing, set_), message=f"is empty while {set_} is set; set both or none"))
    if start and end and end <= start:
        found.append(Problem(keys=both[::-1], message=f"'{end:%Y-%m-%dT%H:%M:%SZ}' is not after {both[0]}"))
    return found
