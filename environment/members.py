"""Who may submit a team's jobs, and whom an alert is sent to: people and Google groups, by their addresses."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from vocabulary.printable import quoted

MOST_MEMBERS = 500  # of a team; an IAM policy has room for 1,500 principals, https://cloud.google.com/iam/quotas
MOST_CHANNELS = 16  # of an alert policy: https://cloud.google.com/monitoring/quotas#alerting_limits

_T = TypeVar("_T")

_SHOWN = 5  # mistakes in one message
_BEFORE_AT = r"(?!.{65,}@)[A-Za-z0-9_%+'-]+(\.[A-Za-z0-9_%+'-]+)*"
_DOMAIN = r"([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z][A-Za-z0-9-]{0,61}[A-Za-z0-9]"


class MemberKind(Enum):
    """What an email address stands for. The value is what Google's IAM puts before it."""

    USER = "user"
    GROUP = "group"


@dataclass(frozen=True, kw_only=True)
class Member:
    """A person, or a Google group of people, who may submit a team's jobs."""

    kind: MemberKind
    email: str

    @property
    def principal(self) -> str:
        """As IAM writes it: https://cloud.google.com/iam/docs/principal-identifiers"""
        return f"{self.kind.value}:{self.email}"

    def __str__(self) -> str:
        """As the files write it, which `member` reads."""
        return f"group:{self.email}" if self.kind is MemberKind.GROUP else self.email


def member(text: str) -> Member:
    """The member that the text names. Raises ValueError; its text reads on after the value."""
    is_group = text.startswith("group:")
    email = text.removeprefix("group:")
    if not re.fullmatch(f"{_BEFORE_AT}@{_DOMAIN}", email):
        raise ValueError("is not a member; write alice@example.com, or group:team@example.com for a Google group")
    if email != email.lower():
        raise ValueError("has capital letters, and GKE compares addresses letter by letter; write it in lower case")
    if email.endswith(".gserviceaccount.com"):
        raise ValueError("is a service account; members are people and Google groups")
    return Member(kind=MemberKind.GROUP if is_group else MemberKind.USER, email=email)


def members(text: str) -> tuple[Member, ...]:
    """Members with commas or spaces between them. Raises ValueError with all that is wrong with any of them."""
    return _all(text, member, MOST_MEMBERS, "members", "name a Google group")


def email_addresses(text: str) -> tuple[str, ...]:
    """Addresses with commas or spaces between them. Raises ValueError with all that is wrong with any of them."""
    return _all(text, _email_address, MOST_CHANNELS, "addresses", "name a mailing list")


def _email_address(text: str) -> str:
    if not re.fullmatch(f"{_BEFORE_AT}@{_DOMAIN}", text):
        raise ValueError(
            "is not an email address; write addresses such as alice@example.com, a group's too without group:, and "
            "commas or spaces between them"
        )
    return text


def _all(text: str, read: Callable[[str], _T], most: int, noun: str, instead: str) -> tuple[_T, ...]:
    """What each of the words is read as. Raises ValueError with all that is wrong with any of them."""
    listed: dict[_T, None] = {}  # a dict keeps their order
    wrong = []
    words = [word for word in re.split("[, \t]+", text) if word]
    for word in words:
        try:
            value = read(word)
        except ValueError as error:
            if len(words) == 1:
                raise
            wrong.append(f"{quoted(word)} {error}")
            continue
        if value in listed:
            wrong.append(f"{quoted(word)} is there twice; keep one")
        listed[value] = None
    if len(listed) > most:
        wrong.insert(0, f"there are {len(listed)} {noun}, and {most} at most; {instead}")
    if wrong:
        more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise ValueError(f"cannot be used: {'; '.join(wrong[:_SHOWN])}{more}")
    return tuple(listed)
