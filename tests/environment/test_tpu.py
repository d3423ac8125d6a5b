"""The rules of the TPU catalogue give what the tables say, and what people type is understood."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from environment.tpu import Slice, UnknownTpuType, slice_for, tpu_types
from environment.tpu_catalogue import MACHINE_TYPES, ZONES_OF_GENERATION

FACTS = Path(__file__).parent.parent / "facts"


def facts(name: str) -> list[dict[str, str]]:
    with (FACTS / name).open(newline="") as stream:
        return list(csv.DictReader(stream))


SLICES = facts("tpu-slices.csv")


def asked_for(row: dict[str, str]) -> str:
    """How a user asks for the slice of a row: rows whose name is not Google's are asked for by their machine type."""
    own_name = row["variant_of"] or "device" in row["name"]
    return f"{row['machine_type']}-{row['topology']}" if own_name else row["name"]


def as_row(slice_: Slice) -> dict[str, str]:
    return {
        "generation": slice_.generation,
        "accelerator": slice_.accelerator,
        "topology": slice_.topology,
        "machine_type": slice_.machine_type.name,
        "hosts": str(slice_.hosts),
        "chips_per_host": str(slice_.chips_per_host),
        "chips": str(slice_.chips),
        "multi_host": str(slice_.multi_host).lower(),
    }


@pytest.mark.parametrize("row", SLICES, ids=lambda row: row["name"])
def test_every_slice_of_the_tables_comes_out_by_rule(row: dict[str, str]) -> None:
    assert as_row(slice_for(asked_for(row))) == {key: row[key] for key in as_row(slice_for("v6e-16"))}


def test_the_tables_are_whole() -> None:
    assert len(SLICES) == 347


@pytest.mark.parametrize("generation", ["v4", "v5e", "v5p", "v6e", "tpu7x"])
def test_the_types_of_a_generation_are_those_of_the_tables(generation: str) -> None:
    named = {row["name"] for row in SLICES if row["generation"] == generation and asked_for(row) == row["name"]}
    assert named == set(tpu_types(generation))


def test_every_machine_type_is_that_of_the_tables() -> None:
    rows = facts("tpu-machine-types.csv")
    assert {machine.name for machine in MACHINE_TYPES} == {row["name"] for row in rows}
    for row in rows:
        machine = next(machine for machine in MACHINE_TYPES if machine.name == row["name"])
        assert machine.generation == row["generation"]
        assert machine.accelerator == row["accelerator"]
        assert machine.chips_per_host == int(row["chips_per_host"])
        assert machine.vcpu == int(row["vcpu"])
        assert machine.memory_gb == int(row["memory_gb"])
        assert set(machine.boot_disks) == set(row["boot_disks"].split())
        assert machine.multi_host == (row["multi_host"] == "true")
        assert machine.flex_start == (row["dws"] == "true")
        assert slice_for(f"{machine.name}-{row['single_host_topology']}").hosts == 1


def test_zones_are_those_that_google_lists() -> None:
    rows = facts("tpu-zones.csv")
    assert {(generation, zone) for generation, zones in ZONES_OF_GENERATION.items() for zone in zones} == {
        (row["generation"], row["zone"]) for row in rows
    }


def test_v6e_and_tpu7x_boot_from_hyperdisk_and_the_others_from_a_balanced_disk() -> None:
    for machine in MACHINE_TYPES:
        expected = "hyperdisk-balanced" if machine.generation in ("v6e", "tpu7x") else "pd-balanced"
        assert machine.boot_disk == expected


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("v5e-16", "v5litepod-16"),
        ("V6E-16", "v6e-16"),
        ("v6e_16", "v6e-16"),
        (" v6e-16 ", "v6e-16"),
        ("trillium-16", "v6e-16"),
        ("v7x-64", "tpu7x-64"),
        ("ironwood-64", "tpu7x-64"),
        ("v6e-4x4", "v6e-16"),
        ("v6e:4x4", "v6e-16"),
        ("v5p-4x4x8", "v5p-256"),
        ("ct6e-standard-4t:4x4", "v6e-16"),
        ("ct5lp-hightpu-8t-2x4", "ct5lp-hightpu-8t-2x4"),
        ("v5p-4x4x16", "ct5p-hightpu-4t-4x4x16"),
        ("ct5l-hightpu-4t-2x2", "ct5l-hightpu-4t-2x2"),
    ],
)
def test_what_people_type_is_understood(typed: str, meant: str) -> None:
    assert slice_for(typed).tpu_type == meant


def test_the_name_of_a_slice_gives_the_same_slice_again_and_can_be_a_label() -> None:
    for row in SLICES:
        slice_ = slice_for(asked_for(row))
        assert slice_for(slice_.tpu_type) == slice_
        assert re.fullmatch("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", slice_.tpu_type)


def test_eight_chips_are_two_hosts_of_four_unless_the_machine_type_says_otherwise() -> None:
    assert (slice_for("v6e-8").hosts, slice_for("v6e-8").machine_type.name) == (2, "ct6e-standard-4t")
    assert (slice_for("ct6e-standard-8t-2x4").hosts, slice_for("ct6e-standard-8t-2x4").chips) == (1, 8)


def test_only_multi_host_tpu7x_needs_a_workload_policy() -> None:
    assert slice_for("tpu7x-64").needs_workload_policy
    assert not slice_for("tpu7x-8").needs_workload_policy
    assert not slice_for("v5p-64").needs_workload_policy


@pytest.mark.parametrize(
    ("typed", "nearest"),
    [
        ("v6e-17", "v6e-16"),
        ("v6e-1000000", "v6e-256"),
        ("v5e-15", "v5litepod-16"),
        ("v5p-12", "v5p-8"),  # counts TensorCores, two a chip
        ("v4-16384", "v4-8192"),
        ("v5p-8576", "v5p-8448"),  # 67 cubes: only 4x4x268, and no side is longer than 256
        ("v6-16", "v6e-16"),
        ("tpu-v6e-16", "v6e-16"),
        ("v6e", "v6e-16"),
        ("v6e-16x", "v6e-16"),
        ("tpu-v5-lite-podslice-16", "v5litepod-16"),
        ("v6e-4x5", "v6e-4x4"),
        ("v6e-4x4x4", "v6e-8x8"),
        ("v5p-8x4x4", "v5p-4x4x8"),
        ("v5litepod-26x16", "v5litepod-16x16"),
        ("ct6e-standard-8t-4x4", "ct6e-standard-8t-2x4"),
        ("ct6e-standard-8t", "ct6e-standard-8t-2x4"),
        ("ct5lp-hightpu-1t-2x2", "ct5lp-hightpu-1t-1x1"),
        ("ct4p-hightpu-8t-2x4", "ct4p-hightpu-4t-2x2x2"),
    ],
)
def test_an_unknown_type_names_the_nearest_one(typed: str, nearest: str) -> None:
    with pytest.raises(UnknownTpuType) as error:
        slice_for(typed)
    assert str(error.value) == f"unknown TPU type '{typed}'; did you mean '{nearest}'?"
    assert slice_for(nearest)


@pytest.mark.parametrize("typed", ["", "x", "v3-8", "-", "a100-8", "²-²", "v6e-²"])
def test_a_type_that_resembles_none_is_refused_with_an_example(typed: str) -> None:
    with pytest.raises(UnknownTpuType, match=r"v6e-16"):
        slice_for(typed)


@pytest.mark.parametrize("typed", ["v6e-0", "v6e-016", "v6e-+16", "v6e-1_6", "v6e-04x4", "v6e-16.0", "v6e-1e1", "v4-4"])
def test_a_number_in_another_notation_is_refused(typed: str) -> None:
    with pytest.raises(UnknownTpuType):
        slice_for(typed)
