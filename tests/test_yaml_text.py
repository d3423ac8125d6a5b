"""YAML is read by the C parser where that makes no difference, and by the one in Python where it does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from environment.project import ROOT
from vocabulary.yaml_text import FastLoader, NotYaml, check, parse

FILES = sorted((ROOT / "manifests").rglob("*.yaml"))


def tree(node: yaml.Node) -> Any:
    """A node as tags, values and lines."""
    if isinstance(node, yaml.MappingNode):
        return node.tag, node.start_mark.line, [(tree(key), tree(value)) for key, value in node.value]
    if isinstance(node, yaml.SequenceNode):
        return node.tag, node.start_mark.line, [tree(item) for item in node.value]
    return node.tag, node.start_mark.line, node.value


def trees(loader: Any) -> Iterator[Any]:
    while loader.check_node():
        yield tree(loader.get_node())


def test_both_parsers_make_the_same_values_on_the_same_lines_of_every_manifest() -> None:
    assert len(FILES) > 20
    for file in FILES:
        text = re.sub(r"\$\{\w+\}", "filled-in", file.read_text(encoding="utf-8"))
        assert list(trees(FastLoader(text))) == list(trees(yaml.SafeLoader(text))), file


@pytest.mark.parametrize("text", ["a: \tb\n", "{a: b\tc}\n", "a: 1\n\ufeffb: 2\n"])
def test_what_c_would_read_in_another_way_is_not_read_by_c(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        FastLoader(text)


def test_the_message_of_what_is_not_yaml_is_that_of_the_parser_in_python() -> None:
    with pytest.raises(NotYaml, match=r"while parsing a flow sequence, expected ',' or ']', but got '<stre"):
        parse("key: [1, 2")
    with pytest.raises(NotYaml, match="expected chomping or indentation indicators, but"):
        check("a: 1\n---\nb: |x\n")
