"""Cloud Build's substitutions: what a text uses, and what becomes of it.

https://cloud.google.com/build/docs/configuring-builds/substitute-variable-values
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

# Those that every build has, then those of builds that a trigger has started. One that has no value is empty.
BUILT_IN = frozenset(
    {
        "PROJECT_ID",
        "PROJECT_NUMBER",
        "BUILD_ID",
        "LOCATION",
        "TRIGGER_NAME",
        "COMMIT_SHA",
        "REVISION_ID",
        "SHORT_SHA",
        "REPO_NAME",
        "REPO_FULL_NAME",
        "BRANCH_NAME",
        "TAG_NAME",
        "REF_NAME",
        "TRIGGER_BUILD_CONFIG_PATH",
        "SERVICE_ACCOUNT_EMAIL",
        "SERVICE_ACCOUNT",
    }
)

# A user's own begin with an underscore.
OWN = re.compile(r"_[A-Z0-9_]+")

_USE = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<braced>[A-Z_][A-Z0-9_]*)\}|(?P<bare>[A-Z_][A-Z0-9_]*)|(?P<other>))")


def used(text: str) -> Iterator[str]:
    """The names that the text uses; "" for a $ that begins no name. Cloud Build writes a plain $ as $$."""
    for match in _USE.finditer(text):
        if match["dollar"] is None:
            yield match["braced"] or match["bare"] or ""


def substituted(text: str, values: Mapping[str, str]) -> str:
    """The text with the values in it, and $$ as $. A name without a value becomes nothing."""
    return _USE.sub(lambda match: match["dollar"] or values.get(match["braced"] or match["bare"] or "", ""), text)


def resolved(own: Mapping[str, str], built_in: Mapping[str, str], *, dynamic: bool) -> dict[str, str]:
    """All values of a build. With `dynamic` (options.dynamicSubstitutions) own values may use built-in and own ones.

    Raises ValueError naming a value that uses itself, directly or through others.
    """
    if not dynamic:
        return {**built_in, **own}
    done: dict[str, str] = dict(built_in)

    def resolve(name: str, above: tuple[str, ...]) -> str:
        if name in above:
            raise ValueError(name)
        if name not in done:
            values = {other: resolve(other, (*above, name)) for other in used(own.get(name, ""))}
            done[name] = substituted(own.get(name, ""), values)
        return done[name]

    for name in own:
        resolve(name, ())
    return done
