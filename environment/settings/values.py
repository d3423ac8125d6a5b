"""What may stand in a value of vars.env: one function a kind, from text to value.

Each raises ValueError with what is wrong and what to do; the text reads on after the value: `'x' is not ...`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timezone
from ipaddress import IPv4Network

from environment.cpu_machine_types import cpu_machine_type
from vocabulary.printable import quoted

_REGION = "[a-z]+-[a-z]+[0-9]{1,2}"
_ZONE = f"{_REGION}-(?:[a-z]|ai[0-9]{{1,2}}[a-z])"  # us-central1-ai1a is an AI zone
_PREFIX_LENGTHS = "write one such as 10.0.0.0/20"


def project_id(text: str) -> str:
    """https://cloud.google.com/resource-manager/docs/creating-managing-projects"""
    if ":" in text:
        raise ValueError(
            "is the id of a domain-scoped project, which cannot be part of a bucket name; use one without a domain"
        )
    if re.fullmatch("[0-9]+", text):
        raise ValueError("is a project number; write the project's id here, and the number in PROJECT_NUMBER")
    return _matching(
        text,
        "[a-z][a-z0-9-]{4,28}[a-z0-9]",
        "is not a project id (6 to 30 lower-case letters, digits and hyphens, a letter first, no hyphen last); "
        "`gcloud projects list` shows yours",
    )


def project_number(text: str) -> str:
    return _matching(
        text,
        "[1-9][0-9]{4,18}",
        "is not a project number; `gcloud projects describe PROJECT_ID` shows it, or leave it empty",
    )


def resource_prefix(text: str) -> str:
    return _matching(
        text,
        "[a-z]([a-z0-9-]*[a-z0-9])?",
        "cannot begin names; use lower-case letters, digits and hyphens, a letter first, no hyphen last",
    )


def region(text: str) -> str:
    if re.fullmatch(_ZONE, text):
        raise ValueError(f"is a zone; its region is '{region_of(text)}'")
    return _matching(text, _REGION, "is not a region; write one such as us-east5")


def zone(text: str) -> str:
    if re.fullmatch(_REGION, text):
        raise ValueError(f"is a region; write one of its zones, such as '{text}-b'")
    return _matching(text, _ZONE, "is not a zone; write one such as us-east5-b")


def standard_zone(text: str) -> str:
    if zone(text) != parent_zone(text):
        raise ValueError(
            "is an AI zone, which Google recommends for accelerators only; write a standard zone of the region, such "
            f"as '{parent_zone(text)}'"
        )
    return text


def parent_zone(zone_: str) -> str:
    """The standard zone that an AI zone belongs to, which has its letter; of another zone, the zone itself.

    https://docs.cloud.google.com/compute/docs/regions-zones/ai-zones
    """
    return re.sub("-ai[0-9]+([a-z])$", r"-\1", zone_)


def region_of(zone_: str) -> str:
    return zone_.rsplit("-", 1)[0]


def cpu_machine(text: str) -> str:
    return cpu_machine_type(text).name


def namespace(text: str) -> str:
    """A name for a namespace that this environment creates: an RFC 1123 label that is not taken."""
    _matching(
        text,
        "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?",
        "cannot name a namespace; use 1 to 63 lower-case letters, digits and hyphens, no hyphen first or last",
    )
    taken = ("default", "kueue-system", "jobset-system")
    if text in taken or text.startswith(("kube-", "gke-", "gmp-")):
        raise ValueError("is a namespace of Kubernetes, GKE or this environment; choose another name")
    return text


def security_group(text: str) -> str:
    """https://cloud.google.com/kubernetes-engine/docs/how-to/google-groups-rbac"""
    return _matching(
        text,
        r"gke-security-groups@[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+",
        "is not the group that GKE uses; it is gke-security-groups@ and your domain, in lower case",
    )


def count(lowest: int, highest: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if re.fullmatch("[0-9]{1,9}", text) and lowest <= int(text) <= highest:
            return int(text)
        raise ValueError(f"is not a whole number from {lowest} to {highest}")

    return parse


def one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text in choices:
            return text
        raise ValueError(f"is not one of {', '.join(choices)}")

    return parse


def true_or_false(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("is neither true nor false")
    return text.lower() == "true"


def network(*, shortest: int, longest: int) -> Callable[[str], IPv4Network]:
    """An IPv4 range in CIDR notation, its prefix length from `shortest` to `longest`."""

    def parse(text: str) -> IPv4Network:
        if ":" in text:
            raise ValueError(f"is not IPv4; {_PREFIX_LENGTHS}")
        _matching(text, r"[0-9.]{7,15}/[0-9]{1,3}", f"is not an IPv4 range; {_PREFIX_LENGTHS}")
        try:
            range_ = IPv4Network(text, strict=False)
        except ValueError:
            raise ValueError(f"is not an IPv4 range; {_PREFIX_LENGTHS}") from None
        if not shortest <= range_.prefixlen <= longest:
            sizes = f"a /{shortest}" if shortest == longest else f"from /{shortest} to /{longest}"
            raise ValueError(f"is a /{range_.prefixlen}; this range must be {sizes}")
        if str(range_.network_address) != text.split("/")[0]:
            raise ValueError(f"does not begin at a /{range_.prefixlen} boundary; did you mean '{range_}'?")
        return range_

    return parse


def gke_version(text: str) -> str:
    return _matching(
        text,
        r"1\.[1-9][0-9](\.[0-9]{1,3}(-gke\.[0-9]{1,10})?)?",
        "is not a GKE version; write 1.34, 1.34.1 or 1.34.1-gke.1200000, or leave it empty for the channel's default",
    )


def time_of_day(text: str) -> str:
    return _matching(text, "([01][0-9]|2[0-3]):[0-5][0-9]", "is not a time of day; write HH:MM (UTC), such as 03:00")


def instant(text: str) -> datetime:
    """An RFC 3339 time, in UTC."""
    wrong = "is not an RFC 3339 time; write one such as 2027-01-31T00:00:00Z"
    _matching(text, r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(Z|[+-][0-9]{2}:[0-9]{2})", wrong)
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S%z").astimezone(timezone.utc)
    except (ValueError, OverflowError):
        raise ValueError(wrong) from None


def bucket(text: str) -> str:
    return _matching(
        text,
        "[a-z0-9][a-z0-9_-]{1,61}[a-z0-9]",
        "cannot name a bucket; use 3 to 63 lower-case letters, digits, hyphens and underscores, a letter or digit "
        "first and last, and not the gs:// before it",
    )


def state_prefix(text: str) -> str:
    return _matching(
        text,
        "[A-Za-z0-9][A-Za-z0-9_-]*(/[A-Za-z0-9][A-Za-z0-9_-]*)*",
        "cannot be a folder in the state bucket; use letters, digits, hyphens and underscores, with single slashes "
        "between and none at the end",
    )


def chart_repository(text: str) -> str:
    return _address(
        text,
        r"(oci|https)://[A-Za-z0-9][A-Za-z0-9.-]*(:[1-9][0-9]{0,4})?(/[A-Za-z0-9_][A-Za-z0-9._-]*)*",
        "is not a chart repository; write one such as oci://mirror.example.com/charts, with no slash at the end",
    )


def image_registry(text: str) -> str:
    return _address(
        text,
        r"[a-z0-9][a-z0-9.-]*(:[1-9][0-9]{0,4})?(/[a-z0-9][a-z0-9._-]*)*",
        "is not an image registry; write host and path such as mirror.example.com/images, with no https:// before it "
        "and no slash at the end",
    )


_REPOSITORY = (
    r"projects/(?P<project>[a-z0-9-]{1,30})/locations/(?P<location>[a-z0-9-]{1,40})"
    r"/connections/(?P<connection>[A-Za-z0-9_-]{1,63})/repositories/(?P<repository>[A-Za-z0-9._-]{1,100})"
)


def build_repository(text: str) -> str:
    """A repository of the 2nd generation. https://cloud.google.com/build/docs/repositories"""
    if re.match("(https?|ssh)://|git@", text):
        raise ValueError(
            "is the address of a Git repository; connect it to Cloud Build and write the connection's name for it, "
            "projects/PROJECT/locations/REGION/connections/CONNECTION/repositories/NAME"
        )
    _matching(
        text,
        _REPOSITORY,
        "is not a repository of Cloud Build's 2nd generation; write "
        "projects/PROJECT/locations/REGION/connections/CONNECTION/repositories/NAME, as `gcloud builds repositories "
        "list` shows it",
    )
    location = repository_parts(text)["location"]
    if not re.fullmatch(_REGION, location):
        raise ValueError(f"is in location '{location}', where triggers cannot be; connect it in a region")
    return text


def repository_parts(text: str) -> dict[str, str]:
    """`project`, `location`, `connection` and `repository` of a name that `build_repository` takes."""
    match = re.fullmatch(_REPOSITORY, text)
    return match.groupdict() if match else {}


def branch(text: str) -> str:
    """A branch as in https://git-scm.com/docs/git-check-ref-format, without names that a shell needs escaped."""
    wrong = "is not a branch; use letters, digits, dots, underscores and hyphens, with single slashes between them"
    _matching(text, r"[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*", wrong)
    if ".." in text or any(part.endswith((".", ".lock")) for part in text.split("/")):
        raise ValueError(wrong)
    return text


def pinned_image(text: str) -> str:
    if "@" not in text:
        raise ValueError("names no digest, so it may be another image tomorrow; add @sha256: and its 64 digits")
    return _matching(
        text,
        r"[a-z0-9][a-z0-9.-]*(:[1-9][0-9]{0,4})?(/[a-z0-9][a-z0-9._-]*)+(:[A-Za-z0-9_][A-Za-z0-9._-]*)?"
        r"@sha256:[0-9a-f]{64}",
        "is not an image with its digest; write host/path/name@sha256: and 64 digits from 0 to f",
    )


def image_prefixes(text: str) -> tuple[str, ...]:
    """What image references begin with, ended so that `host/team/` does not let in `host/team-of-others/`."""
    prefixes = tuple(filter(None, (part.strip() for part in text.split(","))))
    if text and not prefixes:
        raise ValueError(
            "names no beginning of an image; write one such as gcr.io/my-project/, or nothing for any image"
        )
    part = "[a-z0-9]+(?:[._-]+[a-z0-9]+)*"
    for prefix in prefixes:
        _address(
            prefix,
            rf"[a-z0-9-]+(\.[a-z0-9-]+)+(:[1-9][0-9]{{0,4}})?/({part}/)*({part}[:@])?",
            f"has {quoted(prefix)}, which is no beginning of an image; write host and path without https://, in lower "
            "case, with a slash (all below), a colon or an @ (one image) at the end, such as gcr.io/my-project/ or "
            "docker.io/library/python:",
        )
    return prefixes


def _address(text: str, pattern: str, wrong: str) -> str:
    """`pattern` lets a port have five digits."""
    port = re.search(r":([0-9]+)(/|$)", _matching(text, pattern, wrong))
    if port and int(port[1]) > 65535:
        raise ValueError(f"has port {port[1]}, and the highest there is is 65535")
    return text


def _matching(text: str, pattern: str, wrong: str) -> str:
    if re.fullmatch(pattern, text):
        return text
    raise ValueError(wrong)
