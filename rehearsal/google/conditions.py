"""IAM conditions: the part of the Common Expression Language that bindings here are written in.

https://cloud.google.com/iam/docs/conditions-overview
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# https://cloud.google.com/iam/docs/conditions-overview#limits
MOST_OPERATORS = 12

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"[^"]*"|'[^']*')|(?P<word>[A-Za-z_]\w*)|(?P<number>\d+)|(?P<sign>&&|\|\||==|!=|[!()\[\],.]))"""
)


_NO_TUNNEL = {"ip": "", "port": 0}  # nothing here asks for a tunnel of IAP


class BadCondition(Exception):
    """The expression is none, or uses what is not supported."""


def operators(expression: str) -> int:
    """How many logical operators it has, which Google limits."""
    return sum(token in ("&&", "||", "!") for token in _tokens(expression))


def holds(expression: str, *, resource: Mapping[str, str], attributes: Mapping[str, Any]) -> bool:
    """Whether the condition holds for a request to `resource` (name, type, service) with these API attributes.

    Raises BadCondition.
    """
    reader = _Reader(_tokens(expression), {"resource": resource, "destination": _NO_TUNNEL}, attributes)
    value = reader.either()
    if reader.at < len(reader.tokens) or not isinstance(value, bool):
        raise BadCondition(f"{expression!r} is no condition")
    return value


def _tokens(expression: str) -> list[str]:
    tokens, at = [], 0
    text = expression.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise BadCondition(f"{text[at : at + 20]!r} is not understood")
        tokens.append(match.group().strip())
        at = match.end()
    return tokens


class _Reader:
    """Evaluates while it reads. Both sides of an operator are read, so that a mistake on the right is seen too."""

    def __init__(self, tokens: list[str], variables: Mapping[str, Any], attributes: Mapping[str, Any]) -> None:
        self.tokens = tokens
        self.variables = variables
        self.attributes = attributes
        self.at = 0

    def either(self) -> Any:
        value = self._both()
        while self._take("||"):
            other = self._both()
            value = value or other
        return value

    def _both(self) -> Any:
        value = self._negated()
        while self._take("&&"):
            other = self._negated()
            value = value and other
        return value

    def _negated(self) -> Any:
        if self._take("!"):
            return not self._negated()
        value = self._value()
        for sign, equal in (("==", True), ("!=", False)):
            if self._take(sign):
                return (value == self._value()) is equal
        return value

    def _value(self) -> Any:
        token = self._next()
        if token == "(":
            value = self.either()
            self._expect(")")
        elif token == "[":
            value = self._list("]")
        elif token[0] in "\"'":
            value = token[1:-1]
        elif token.isdecimal():
            value = int(token)
        elif token == "api":
            value = self
        elif token in self.variables:
            value = self.variables[token]
        else:
            raise BadCondition(f"{token!r} is not known")
        while self._take("."):
            value = self._member(value, self._next())
        return value

    def _member(self, value: Any, name: str) -> Any:
        if not self._take("("):
            if not isinstance(value, Mapping) or name not in value:
                raise BadCondition(f"{name!r} is not known")
            return value[name]
        arguments = self._list(")")
        if value is self and name == "getAttribute" and len(arguments) == 2:
            return self.attributes.get(arguments[0], arguments[1])
        if isinstance(value, str) and name == "startsWith" and len(arguments) == 1:
            return value.startswith(arguments[0])
        if isinstance(value, str) and name == "endsWith" and len(arguments) == 1:
            return value.endswith(arguments[0])
        if isinstance(value, list) and name == "hasOnly" and len(arguments) == 1:
            return set(value) <= set(arguments[0])
        raise BadCondition(f"{name}() is not known here")

    def _list(self, end: str) -> list[Any]:
        items: list[Any] = []
        if self._take(end):
            return items
        items.append(self.either())
        while self._take(","):
            items.append(self.either())
        self._expect(end)
        return items

    def _next(self) -> str:
        if self.at == len(self.tokens):
            raise BadCondition("the expression ends too early")
        self.at += 1
        return self.tokens[self.at - 1]

    def _take(self, token: str) -> bool:
        there = self.at < len(self.tokens) and self.tokens[self.at] == token
        self.at += there
        return there

    def _expect(self, token: str) -> None:
        if not self._take(token):
            raise BadCondition(f"{token!r} is missing")
