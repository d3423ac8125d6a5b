"""The verdicts on what the real compiler answered, and the bound of a step."""

from __future__ import annotations

import pytest

from manifests.recipes import recipe_named
from tests.fleets import one_group, with_fleet
from tests.tpuenv.compilation.ground import recorded, run
from tpuenv.compilation import verdict
from tpuenv.compilation.answers import Compiled, NotAnAnswer, answer_from
from tpuenv.compilation.chips import CHIPS, GIB
from tpuenv.compilation.question import question_of

V4 = with_fleet(one_group("type: v4-32, slices: 1"))
V5E = with_fleet(one_group("type: v5litepod-16, slices: 1"))


def test_what_fits_says_what_is_in_memory_and_a_bound_of_the_step() -> None:
    sandbox = run(V4, preset="sandbox-6.5b")
    assert list(verdict.lines(sandbox, question_of(sandbox), recorded("fits"))) == [
        "fits: peak 26.13 of 30.75 GiB a chip (85 %)",
        "    2.06 GiB  parameters",
        "    4.12 GiB  optimizer state",
        "    0.62 MiB  batch",
        "    8.00 GiB  bf16[32,16,2048,4096] (forward, layers: dynamic_update_slice)",
        "    1.00 GiB  bf16[16,2048,16384] (forward, layers: mul)",
        "    0.25 GiB  bf16[16384,32,256] (copy of parameters)",
        "    0.25 GiB  bf16[256,32,16384] (copy of parameters)",
        "    1.59 GiB  other temporaries",
        "    8.85 GiB  gaps, for what is in memory at other times",
        "A bound, not an estimate: no step can take less than 6.43 s on these chips, which is at most 81,577 tokens/s "
        "(5,099 a chip).",
    ]


def test_what_does_not_fit_says_by_how_much_and_what_is_large() -> None:
    llama = run(V5E, preset="llama3-8b", per_device_batch_size="8")
    lines = list(verdict.lines(llama, question_of(llama), recorded("does-not-fit")))
    assert lines[0] == "does not fit: 29.69 of 15.75 GiB a chip, 13.94 GiB too much"
    assert "    7.83 GiB  bf16[8,4096,128256] (backward: convert_element_type)" in lines
    assert not any("bound" in line for line in lines)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("assertion", "Remat policy needs to be on list of remat policies"),
        ("unknown-model", "model_name: 'gpt3-53k' is not one of the choices; did you mean 'gpt3-52k'?"),
        (
            "not-a-number",
            "per_device_batch_size: 'abc': input should be a valid integer, unable to parse string as an integer; "
            "per_device_batch_size: 'abc': input should be a valid number, unable to parse string as a number",
        ),
    ],
)
def test_what_maxtext_refuses_is_one_line(name: str, line: str) -> None:
    assert verdict.in_one_line(run(), recorded(name)) == f"invalid: MaxText refuses it: {line}"


def test_the_arithmetic_of_the_bound_is_six_operations_a_parameter_and_token() -> None:
    """The sandbox's model: 32 layers of 4 x 4096 x 4096 and 2 x 4096 x 16384, and the output's 4096 x 32000. Attention
    adds a tenth.
    """
    answer = recorded("fits")
    assert isinstance(answer, Compiled) and answer.model_flops is not None and answer.xla_flops is not None
    parameters = 32 * (4 * 4096**2 + 3 * 4096 * 16384) + 4096 * 32000
    ratio = answer.model_flops / (6 * parameters * answer.tokens / 16)
    assert 1 < ratio < 1.15
    assert answer.xla_flops < answer.model_flops / 30, "XLA counts the 32 layers once"


def test_eight_bit_arithmetic_has_a_lower_bound() -> None:
    answer = recorded("fits")
    assert isinstance(answer, Compiled)
    v6e = CHIPS["v6e"]
    seconds = {bits: verdict.least_seconds(v6e, answer, devices=1, eight_bit=bits == 8) for bits in (8, 16)}
    assert seconds[8] == seconds[16] / 2
    quantized = run(quantization="int8")
    assert "963 ms" in list(verdict.lines(quantized, question_of(quantized), answer))[-1]


def test_a_device_of_tpu7x_is_half_a_chip() -> None:
    answer = recorded("fits")
    assert isinstance(answer, Compiled)
    ironwood = run(with_fleet(one_group("type: tpu7x-32, slices: 1")))
    assert verdict.in_one_line(ironwood, answer) == "fits: peak 26.13 of 94.74 GiB a device (half a chip) (28 %)"
    assert answer.model_flops is not None
    assert verdict.least_seconds(CHIPS["tpu7x"], answer, devices=2, eight_bit=False) == answer.model_flops / (
        2307e12 / 2
    )


def test_without_arithmetic_the_bound_is_that_of_the_memory() -> None:
    answer = Compiled(
        peak_bytes=GIB,
        argument_bytes=800_000_000,
        output_bytes=840_000_000,
        tokens=1,
        xla_flops=None,
        model_flops=None,
        parts=(),
        seconds=1,
    )
    assert verdict.least_seconds(CHIPS["v6e"], answer, devices=1, eight_bit=False) == pytest.approx(0.001)


@pytest.mark.parametrize("damaged", [None, [], {}, {"outcome": "fits"}, {"outcome": "compiled", "seconds": "9"}])
def test_other_json_is_no_answer(damaged: object) -> None:
    with pytest.raises(NotAnAnswer):
        answer_from(damaged)


def test_the_peaks_are_those_that_hello_tpu_measures_against() -> None:
    """The program cannot import ours: it runs alone in its pod."""
    source = (recipe_named("hello-tpu").folder / "hello_tpu.py").read_text(encoding="utf-8")
    namespace: dict[str, object] = {}
    table = source.partition("DATA_SHEETS: ")[2].partition("\n}\n")[0].partition(" = ")[2] + "\n}"
    exec(f"table = {table}", namespace)
    sheets = namespace["table"]
    assert isinstance(sheets, dict)
    kinds = {"v4": "TPU v4", "v5e": "TPU v5e", "v5p": "TPU v5p", "v6e": "TPU v6e", "tpu7x": "TPU7x"}
    assert {name: chip.bf16_flops for name, chip in CHIPS.items()} == {
        name: sheets[kind][0] * 1e12 for name, kind in kinds.items()
    }
