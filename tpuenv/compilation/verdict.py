"""The compiler's answer in words: fits, does not fit, or invalid, and how fast a step can be at best."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from environment.fleet.values import meant
from environment.tpu import Slice
from manifests.mesh import devices_per_chip
from manifests.render import Run
from tpuenv.compilation.answers import Answer, Compiled, Part, Refused, TooLarge
from tpuenv.compilation.chips import CHIPS, GIB, Chip
from tpuenv.compilation.question import Question
from vocabulary.printable import counted, quoted, shortened

_MOST_TEMPORARIES = 4
_OTHERS = "other temporaries"
_LONGEST_MESSAGE = 400  # characters
_PYDANTIC = re.compile(r"^(\S+)\n  (.+) \[type=\w+, input_value=(.*), input_type=\w+\]$", re.MULTILINE)
_UNITS = (("s", 1.0), ("ms", 1e3), ("µs", 1e6))


def of_run(run: Run) -> str:
    """ "2 v6e-16 slices (4x4, 32 chips)" """
    assert run.group is not None
    slice_ = run.group.slice
    slices, chips = counted(run.slices, f"{slice_.tpu_type} slice"), counted(run.slices * slice_.chips, "chip")
    return f"{slices} ({slice_.topology}, {chips})"


def in_one_line(run: Run, answer: Answer) -> str:
    """ "fits: peak 11.08 of 31.24 GiB a chip (35 %)" """
    assert run.group is not None
    slice_ = run.group.slice
    chip = CHIPS[slice_.generation]
    if isinstance(answer, Compiled):
        peak = answer.peak_bytes / GIB
        share = 100 * peak / chip.usable_gib
        return f"fits: peak {peak:.2f} of {chip.usable_gib:.2f} GiB {_a_device(slice_)} ({share:.0f} %)"
    if isinstance(answer, TooLarge):
        required, available = answer.required_bytes / GIB, answer.available_bytes / GIB
        return (
            f"does not fit: {required:.2f} of {available:.2f} GiB {_a_device(slice_)}, "
            f"{required - available:.2f} GiB too much"
        )
    return f"invalid: {_refusal(answer)}"


def lines(run: Run, question: Question, answer: Answer) -> Iterator[str]:
    """The whole verdict: what is in memory at the peak, and the bound of a step that fits."""
    yield in_one_line(run, answer)
    if isinstance(answer, Refused):
        return
    yield from _parts(answer.parts, answer.peak_bytes if isinstance(answer, Compiled) else answer.required_bytes)
    if isinstance(answer, Compiled):
        yield _bound(run, question, answer)


def least_seconds(chip: Chip, answer: Compiled, *, devices: int, eight_bit: bool) -> float:
    """The time below which no step can be: that of its arithmetic at the chip's peak, or that of reading each argument
    and writing each result once. `devices` is how many a chip has: the answer is about one of them.

    The arithmetic is what MaxText counts for the model, or XLA for what it compiled if that is more. Both leave things
    out, what is computed again and all passes of a loop but one, so it stays a bound. XLA's count of bytes would be
    none: it has accesses to the memory on the chip too.
    """
    flops = max(answer.model_flops or 0, answer.xla_flops or 0)
    peak = chip.eight_bit_flops if eight_bit else chip.bf16_flops
    moved = answer.argument_bytes + answer.output_bytes
    return devices * max(flops / peak, moved / chip.hbm_bytes_a_second)


def _bound(run: Run, question: Question, answer: Compiled) -> str:
    assert run.group is not None
    slice_ = run.group.slice
    chip = CHIPS[slice_.generation]
    seconds = least_seconds(
        chip, answer, devices=devices_per_chip(slice_), eight_bit=_in_eight_bits(question.arguments)
    )
    tokens = answer.tokens / seconds
    chips = run.slices * slice_.chips
    return (
        f"A bound, not an estimate: no step can take less than {_time(seconds)} on these chips, which is at most "
        f"{tokens:,.0f} tokens/s ({tokens / chips:,.0f} a chip)."
    )


def _in_eight_bits(arguments: Iterable[str]) -> bool:
    values = dict(word.partition("=")[::2] for word in arguments)
    return values.get("quantization", "").strip("\"'") not in ("", "none", "None")


def _parts(parts: tuple[Part, ...], total: int) -> Iterator[str]:
    sums = [part for part in parts if not (part.operation or part.shape) and part.name != _OTHERS]
    temporaries = [part for part in parts if part not in sums]
    shown = [part for part in temporaries if part.shape or part.operation][:_MOST_TEMPORARIES]
    for part in sums:
        yield f"{_size(part.bytes)}  {part.name}"
    for part in shown:
        yield f"{_size(part.bytes)}  {' '.join(filter(None, (part.shape, _operation(part.operation))))}"
    if rest := sum(part.bytes for part in temporaries) - sum(part.bytes for part in shown):
        yield f"{_size(rest)}  {_OTHERS if shown else 'temporaries'}"
    if parts and (gaps := total - sum(part.bytes for part in parts)) > GIB / 100:
        yield f"{_size(gaps)}  gaps, for what is in memory at other times"


def _operation(name: str) -> str:
    """What an operation is in the model, from the path that JAX gives it.

    `jit(train_step)/transpose(jvp())/while/body/eval_jaxpr/checkpoint/dot_general` is "backward, layers: dot_general".
    """
    if not name:
        return ""
    if name.startswith("state"):
        return "(copy of parameters)"
    where = ["backward" if "transpose(" in name else "forward", *(["layers"] if "/while/" in name else [])]
    steps = [
        step for step in re.split(r"/(?![^(]*\))", name) if not re.match(r"jit\(|jvp\(|transpose\(|while$|body$", step)
    ]
    steps = [step for step in steps if step not in ("eval_jaxpr", "checkpoint", "rematted_computation", "pallas_call")]
    return f"({', '.join(where)}{': ' if steps else ''}{shortened(' '.join(dict.fromkeys(steps[-2:])), longest=60)})"


def _refusal(answer: Refused) -> str:
    """MaxText's own words in one line.

    Its settings are checked by pydantic, which writes a line with the key, then one with the reason, the value and its
    type in brackets, then a link. https://docs.pydantic.dev/latest/errors/errors/
    """
    refused = dict.fromkeys(_refused_value(*match.groups()) for match in _PYDANTIC.finditer(answer.message))
    text = "; ".join(refused) or " ".join(answer.message.split())
    return f"MaxText refuses it: {shortened(text, longest=_LONGEST_MESSAGE) or answer.kind}"


def _refused_value(key: str, reason: str, value: str) -> str:
    choices = re.findall("'([^']*)'", reason)
    typed = value.strip("'")
    if len(choices) > 1:
        return f"{key}: {quoted(typed)} is not one of the choices{meant(typed, choices)}"
    return f"{key.partition('.')[0]}: {quoted(typed)}: {reason[:1].lower()}{reason[1:]}"


def _a_device(slice_: Slice) -> str:
    return "a chip" if devices_per_chip(slice_) == 1 else "a device (half a chip)"


def _size(size: int) -> str:
    return f"  {size / GIB:6.2f} GiB" if size >= GIB / 10 else f"  {size / 2**20:6.2f} MiB"


def _time(seconds: float) -> str:
    """With three digits that count."""
    unit, factor = next((unit for unit in _UNITS if seconds >= 1 / unit[1]), _UNITS[-1])
    return f"{f'{seconds * factor:#.3g}'.rstrip('.')} {unit}"
