"""The list prices that come with the project, and price files of one's own."""

from __future__ import annotations

import json
import re
import textwrap
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from environment.list_prices import SHIPPED
from environment.project import ROOT
from tests.examples import examples
from tpuenv.cost import prices
from tpuenv.cost.prices import SECTIONS, load, read
from tpuenv.failure import WrongArgument

GOOD = """\
chip_hour:
  as_of: 2026-11-01
  source: our contract
  usd: {ct6e: {on-demand: {us-east5: 1.89}, reservation: 1.22}}
disk_gib_month: {usd: {hyperdisk-balanced: 0.09}}
cluster_hour: {usd: 0}
"""


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "prices.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refused(folder: Path, text: str) -> str:
    with pytest.raises(WrongArgument) as error:
        read(written(folder, text), "us-east5")
    assert error.value.exit_code == 2
    return str(error.value).replace(str(folder / "prices.yaml"), "FILE")


def test_the_list_prices_have_the_form_of_a_price_file_each_section_with_its_day_and_its_source() -> None:
    sections = read(SHIPPED, "us-east5")
    assert sections == json.loads(SHIPPED.read_text(encoding="utf-8"), parse_float=Decimal, parse_int=Decimal)
    assert list(sections) == list(SECTIONS)
    for section in sections.values():
        assert section["as_of"].startswith("2026-")
        assert section["source"].startswith("https://")


def test_no_list_price_of_a_chip_is_a_placeholder() -> None:
    """700 USD stands for "not known" where the prices are from, and placeholders of tpu7x equal other generations."""
    chips = read(SHIPPED, "us-east5")["chip_hour"]["usd"]
    assert "tpu7x" not in chips
    for series, modes in chips.items():
        assert set(modes) == {"on-demand", "spot"}
        for region, usd in modes["on-demand"].items():
            assert 1 < usd < 5
            assert 0 < modes["spot"].get(region, usd / 2) < usd, (series, region)


def test_a_price_of_ones_own_counts_before_the_list_price_and_one_price_is_for_all_regions(tmp_path: Path) -> None:
    known = load(written(tmp_path, GOOD), "us-east5")
    assert known.usd("chip_hour", "ct6e", "on-demand", "us-east5") == Decimal("1.89")
    assert known.usd("chip_hour", "ct6e", "on-demand", "us-central1") == Decimal("2.7")
    assert known.usd("chip_hour", "ct6e", "reservation", "us-central1") == Decimal("1.22")
    assert known.usd("chip_hour", "ct5p", "reservation", "us-central1") is None
    assert known.usd("disk_gib_month", "hyperdisk-balanced", "us-east5") == Decimal("0.09")
    assert known.usd("cluster_hour", "us-east5") == 0
    assert [(source.section, source.as_of, source.source[:12]) for source in known.used] == [
        ("chip_hour", "2026-11-01", "our contract"),
        ("chip_hour", "2026-02-26", "https://gith"),
        ("disk_gib_month", "", ""),
        ("cluster_hour", "", ""),
    ]


def test_the_price_files_of_the_page_and_of_the_docstring_are_good(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "cost.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(read(written(tmp_path, example), "us-east5")) == 4
    (example,) = re.findall(r"\n\n((?:    .*\n)+)\n", prices.__doc__ or "")
    assert len(read(written(tmp_path, textwrap.dedent(example)), "us-east5")) == 4


def test_the_region_of_the_settings_is_known_whatever_google_has_listed(tmp_path: Path) -> None:
    path = written(tmp_path, "cluster_hour: {usd: {mars-north1: 1}}")
    assert load(path, "mars-north1").usd("cluster_hour", "mars-north1") == 1
    with pytest.raises(WrongArgument, match="is no region"):
        load(path, "us-east5")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("chips_hour: {usd: 1}", "FILE:1: chips_hour: is not a key; did you mean 'chip_hour'?"),
        (
            "chip_hour: {usd: {ct6: {spot: 1}}}",
            "FILE:1: chip_hour.usd.ct6: is no TPU machine series; did you mean 'ct6e'?",
        ),
        (
            "chip_hour: {usd: {ct6e: {spott: 1}}}",
            "FILE:1: chip_hour.usd.ct6e.spott: is no capacity; did you mean 'spot'?",
        ),
        (
            "chip_hour:\n usd:\n  ct6e:\n   spot:\n    us-esat5: 1",
            "FILE:5: chip_hour.usd.ct6e.spot.us-esat5: is no region; did you mean 'us-east5'?",
        ),
        ("gb_hour: {usd: {n22: 1}}", "FILE:1: gb_hour.usd.n22: is no series of CPU machines; did you mean 'n2'?"),
        (
            "disk_gib_month: {usd: {pd-balance: 1}}",
            "FILE:1: disk_gib_month.usd.pd-balance: is no type of boot disk; did you mean 'pd-balanced'?",
        ),
        (
            "cluster_hour: {usd: $0.10}",
            "FILE:1: cluster_hour.usd: '$0.10' is not a price; write a number of USD such as 2.7, without a currency",
        ),
        ("cluster_hour: {usd: -1}", "'-1' is not a price"),
        ("cluster_hour: {usd: .nan}", "'.nan' is not a price"),
        ("cluster_hour: {usd: 1e99}", "'1e99' is not a price"),
        ("cluster_hour: {usd: '2,70'}", "'2,70' is not a price"),
        ("cluster_hour: {usd: [1]}", "FILE:1: cluster_hour.usd: is a list; write one value"),
        ("cluster_hour: {usd: }", "FILE:1: cluster_hour.usd: is empty; write one value"),
        ("cluster_hour: {as_of: 2026-11-01}", "FILE:1: cluster_hour: has no usd; add the prices in USD"),
        (
            "cluster_hour: 0.1",
            "FILE:1: cluster_hour: is one value; it should hold usd, as_of and source, such as {usd: 2.7}",
        ),
        ("cluster_hour: {usd: 1, as_of: 2026-02-30}", "'2026-02-30' is not a day; write one such as 2026-11-01"),
        ("cluster_hour: {usd: 1, as_of: 20261101}", "'20261101' is not a day; write one such as 2026-11-01"),
        ("cluster_hour: {usd: 1, as_of: 2026-W44-7}", "'2026-W44-7' is not a day; write one such as 2026-11-01"),
        ('cluster_hour: {usd: 1, source: "\\e[2J"}', "'\\x1b[2J' has a character that cannot be printed"),
        ('cluster_hour: {usd: 1, source: "one\\nanother"}', "'one\\nanother' has a character that cannot be printed"),
        ("cluster_hour: {usd: {us-east5: {a: 1}}}", "holds keys of its own; write one value"),
        ("cluster_hour: {usd: 1}\ncluster_hour: {usd: 2}", "is there twice, on lines 1 and 2; keep one"),
        ("- 1", "FILE:1: is a list; it should hold sections of prices, such as chip_hour"),
        ("", "FILE:1: is empty; it should hold sections of prices, such as chip_hour"),
        ("a: [", "FILE:1: is not YAML"),
    ],
)
def test_a_wrong_price_file_is_refused_with_the_place_and_what_to_write(
    text: str, message: str, tmp_path: Path
) -> None:
    assert message in refused(tmp_path, text)


def test_all_problems_of_a_price_file_are_named_at_once(tmp_path: Path) -> None:
    assert refused(tmp_path, "a: 1\ncluster_hour: {usd: x}\nnat_vm_hour: {usd: y}").count("--prices: FILE:") == 3


def test_a_price_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(WrongArgument, match=r"--prices: .*/none\.yaml: there is no such file in"):
        load(tmp_path / "none.yaml", "us-east5")


@settings(max_examples=examples(100))
@given(st.data())
def test_a_mangled_price_file_is_read_or_refused_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    raw = GOOD.encode()
    start = data.draw(st.integers(0, len(raw)))
    end = data.draw(st.integers(start, min(len(raw), start + 12)))
    path = written(tmp_path_factory.mktemp("mangled"), raw[:start] + data.draw(st.binary(max_size=6)) + raw[end:])
    try:
        known = load(path, "us-east5")
    except WrongArgument:
        return
    assert known.usd("cluster_hour", "us-east5") is not None
