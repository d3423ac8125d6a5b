"""What one chip of each TPU generation can do at most, and how much memory the compiler lets a program use.

Facts: the page of each generation in Google's documentation, https://cloud.google.com/tpu/docs/v4 (v5e, v5p, v6e,
tpu7x), read November 2026. Where two of its editions differ, the higher figure: what is derived from it is a bound.
The memory is what libtpu 0.0.46 names when a program does not fit; tests/workloads/test_fit.py asks it.
"""

from __future__ import annotations

from dataclasses import dataclass

GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class Chip:
    """Peaks of one chip, which no program exceeds."""

    bf16_flops: float  # floating-point operations a second
    eight_bit_flops: float  # the same with 8-bit numbers: int8, and on tpu7x fp8
    hbm_bytes_a_second: float
    usable_gib: float  # of HBM, of each device that JAX shows for it


CHIPS = {
    "v4": Chip(bf16_flops=275e12, eight_bit_flops=275e12, hbm_bytes_a_second=1228e9, usable_gib=30.75),
    "v5e": Chip(bf16_flops=197e12, eight_bit_flops=394e12, hbm_bytes_a_second=819e9, usable_gib=15.75),
    "v5p": Chip(bf16_flops=459e12, eight_bit_flops=918e12, hbm_bytes_a_second=2765e9, usable_gib=95.73),
    "v6e": Chip(bf16_flops=918e12, eight_bit_flops=1836e12, hbm_bytes_a_second=1640e9, usable_gib=31.24),
    "tpu7x": Chip(bf16_flops=2307e12, eight_bit_flops=4614e12, hbm_bytes_a_second=7380e9, usable_gib=94.74),
}
