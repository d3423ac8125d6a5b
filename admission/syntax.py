"""The forms that Kubernetes gives to names: k8s.io/apimachinery 0.34, pkg/util/validation."""

from __future__ import annotations

import re

LABEL_LENGTH = 63
SUBDOMAIN_FIX = "use lower-case letters, digits, hyphens and dots, a letter or digit at both ends"
LABEL_FIX = "use at most 63 lower-case letters, digits and hyphens"
NAME_FIX = "use lower-case letters, digits and hyphens, a letter first"
LABEL_VALUE_FIX = "use at most 63 letters, digits, hyphens, dots and underscores, a letter or digit at both ends"
RANDOM_SUFFIX = 5  # characters that the API server adds to a generateName, and to a pod's name

_LABEL_1123 = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035 = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL_1123}(\.{_LABEL_1123})*"
_NAME_PART = r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"


def is_label(text: str) -> bool:
    """IsDNS1123Label."""
    return len(text) <= LABEL_LENGTH and re.fullmatch(_LABEL_1123, text) is not None


def is_label_1035(text: str) -> bool:
    """IsDNS1035Label: as before, and a letter first."""
    return len(text) <= LABEL_LENGTH and re.fullmatch(_LABEL_1035, text) is not None


def is_subdomain(text: str) -> bool:
    """IsDNS1123Subdomain."""
    return len(text) <= 253 and re.fullmatch(_SUBDOMAIN, text) is not None


def is_label_value(text: str) -> bool:
    """IsValidLabelValue; empty is one."""
    return len(text) <= LABEL_LENGTH and re.fullmatch(rf"({_NAME_PART})?", text) is not None


def is_qualified_name(text: str) -> bool:
    """IsQualifiedName, as keys of labels and annotations are: perhaps a subdomain and a slash, then a name."""
    prefix, slash, name = text.rpartition("/")
    return (not slash or is_subdomain(prefix)) and bool(name) and is_label_value(name)


def is_domain_prefixed_path(text: str) -> bool:
    """IsDomainPrefixedPath, such as ray.io/kuberay-operator."""
    domain, slash, path = text.partition("/")
    return bool(slash) and is_subdomain(domain) and re.fullmatch(_PATH, path) is not None


def longest(name: str) -> str:
    """The name with what the API server adds to a generateName, which it cuts off so that 63 characters are enough."""
    if not name.endswith("..."):
        return name
    return name.removesuffix("...")[: LABEL_LENGTH - RANDOM_SUFFIX] + "x" * RANDOM_SUFFIX
