"""What Terraform prints with -json, a message a line.

https://developer.hashicorp.com/terraform/internals/machine-readable-ui
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Messages:
    """The messages of one command. `plain` are lines that are no JSON, from before Terraform has read its options."""

    messages: Sequence[Mapping[str, Any]]
    plain: Sequence[str]

    @classmethod
    def of(cls, output: str) -> Messages:
        messages, plain = [], []
        for line in output.splitlines():
            try:
                message = json.loads(line)
            except ValueError:
                message = None
            if isinstance(message, dict):
                messages.append(message)
            else:
                plain.append(line)
        return cls(messages=messages, plain=plain)

    @property
    def version(self) -> str:
        """Terraform's version; OpenTofu gives its own under another name."""
        message = next((message for message in self.messages if message.get("type") == "version"), {})
        return str(message.get("terraform") or message.get("tofu") or "unknown")

    def diagnostics(self, severity: str) -> list[Mapping[str, Any]]:
        """Those of one severity: "error" or "warning"."""
        diagnostics = (message["diagnostic"] for message in self.messages if message.get("type") == "diagnostic")
        return [diagnostic for diagnostic in diagnostics if diagnostic["severity"] == severity]

    @property
    def imported(self) -> set[str]:
        """The addresses of the resources that the plan imports, also of a plan that ended with errors for others."""
        changes = (message["change"] for message in self.messages if message.get("type") == "planned_change")
        return {change["resource"]["addr"] for change in changes if change.get("importing")}

    @property
    def warnings(self) -> list[str]:
        return list(dict.fromkeys(diagnostic["summary"] for diagnostic in self.diagnostics("warning")))

    @property
    def errors(self) -> str:
        """As Terraform prints them without -json."""
        errors = [_error_text(diagnostic) for diagnostic in self.diagnostics("error")]
        return "\n\n".join(errors or ["\n".join(self.plain).strip()])


def _error_text(diagnostic: Mapping[str, Any]) -> str:
    parts = [f"Error: {diagnostic['summary']}"]
    if address := diagnostic.get("address"):
        parts.append(f"  with {address}")
    if detail := diagnostic.get("detail"):
        parts.append(detail)
    return "\n".join(parts)
