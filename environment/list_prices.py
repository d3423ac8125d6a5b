"""Google's list prices, of a dated file, and prices of other files before them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

SHIPPED = Path(__file__).with_name("list_prices.json")


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where prices of a section are from, and when they were read there; either may be empty."""

    section: str
    as_of: str
    source: str


class Prices:
    """The prices of one or several files, of which the first that has a price counts.

    `used` are the sources of the prices that were asked for.
    """

    def __init__(self, *files: Mapping[str, Any]) -> None:
        self._files = files
        self.used: list[Source] = []

    def usd(self, section: str, *path: str) -> Decimal | None:
        """The price of what the path of keys names; None if it is not known."""
        for file in self._files:
            found = file.get(section, {}).get("usd")
            for key in path:
                found = found.get(key) if isinstance(found, Mapping) else found
            if isinstance(found, Decimal):
                head = file[section]
                source = Source(section=section, as_of=head.get("as_of", ""), source=head.get("source", ""))
                if source not in self.used:
                    self.used.append(source)
                return found
        return None


def list_prices() -> dict[str, Any]:
    """The sections of the list prices; docs/cost.md says what each holds, and where it is from."""
    sections: dict[str, Any] = json.loads(SHIPPED.read_text(encoding="utf-8"), parse_float=Decimal, parse_int=Decimal)
    return sections
