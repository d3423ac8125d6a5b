"""Compiles MaxText's training step for a TPU slice on a machine without one, and says how much memory it takes.

Reads one line of JSON on stdin:

    {"topology": {"name", "chip_config_name", "chips_per_host_bounds", "wrap", "devices"}, "slices", "arguments"}

and prints lines of JSON on stdout: {"doing": TEXT} for what it begins, and at last {"answer": {...}} with the outcome
"compiled", "too large" or "refused". Everything that MaxText and the compiler print goes to stderr. It ends by itself
when its stdin is closed.

It runs with the packages of requirements.txt, and files that the compiler writes go to the working directory.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

DUMP = Path("dump")
NAME = "slice"  # of the topology that is compiled for, in MaxText's table
MOST_PARTS = 12

# `instruction{index}: 1024 bytes (cumulative: 4096 bytes)`, below the header `Live ranges at 9 (peak):`
LIVE = re.compile(r"^\s+([\w.-]+)\{([\d,]*)\}: (\d+) bytes")
PEAK = re.compile(r"^\s+Live ranges at \d+ \(peak\):")
# `value: <9 instruction{index} (phi) @0> (size=1024,offset=0): bf16[2,8]{1,0:T(8,128)}`; (phi) where a loop has it
VALUE = re.compile(r"^ ?value: <\d+ ([\w.-]+(?:\{[\d,]*\})?) (?:\(phi\) )?@\d+> \(size=\d+,offset=\d+\): ([^{\s]+)")
# `%instruction = bf16[2,8]{1,0} parameter(3), metadata={op_name="..."}`: name, kind, operation of the model
OPERATION = re.compile(r'^\s+(?:ROOT )?%?([\w.-]+) = .*?[\w\])}] ([\w-]+)\(.*op_name="((?:[^"\\]|\\.)*)"')
_SIZE = r"([\d.]+)([KMG]?)"
TOO_LARGE = re.compile(
    rf"RESOURCE_EXHAUSTED.*?(?:\({_SIZE}\) exceeds available HBM \({_SIZE}\)|Used {_SIZE} of {_SIZE} hbm)", re.DOTALL
)
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def main() -> None:
    """Answers one question. Errors of MaxText and the compiler are answers too; a crash of the compiler is none."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(**words: object) -> None:
        answers.write(json.dumps(words) + "\n")
        answers.flush()

    question = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_caller, daemon=True).start()
    began = time.monotonic()
    answer = compiled(question, doing=lambda text: say(doing=text))
    say(answer={**answer, "seconds": round(time.monotonic() - began, 1)})
    answers.close()
    # Without the compiler's own end, which can take seconds.
    os._exit(0)


def _end_with_the_caller() -> None:
    sys.stdin.read()
    os._exit(1)


def compiled(question: Mapping[str, Any], doing: Callable[[str], None]) -> dict[str, Any]:
    """The answer: the outcome, sizes in bytes, all of one device, and floating-point operations of one device."""
    os.environ.update(
        TPU_SKIP_MDS_QUERY="1",  # no question to Google's metadata server
        ALLOW_MULTIPLE_LIBTPU_LOAD="1",  # no lock in /tmp: several may compile at once, for none uses a TPU
        JAX_PLATFORMS="cpu",
        DECOUPLE_GCLOUD="TRUE",
        ENABLE_PJRT_COMPATIBILITY="true",
        # The TPU compiler obeys jaxlib's flag: it writes what is in memory at the peak, also of what is too large.
        XLA_FLAGS=f"--xla_dump_to={DUMP} --xla_dump_hlo_as_text=true",
    )
    doing("importing MaxText")
    from maxtext.trainers.pre_train import train_compile
    from maxtext.utils import accelerator_to_spec_map, maxtext_utils

    topology = dict(question["topology"])
    accelerator_to_spec_map.UserFacingNameToSystemCharacteristics[NAME] = accelerator_to_spec_map.SystemCharacteristics(
        platform="tpu",
        topology_name=topology["name"],
        chip_config_name=topology["chip_config_name"],
        chips_per_host_bounds=tuple(topology["chips_per_host_bounds"]),
        devices_per_slice=topology["devices"],
        wrap=tuple(topology["wrap"]),
    )
    found: dict[str, Any] = {}
    compile_step = train_compile.jit_and_compile

    def measured(*arguments: Any, **keywords: Any) -> Any:
        config = keywords["config"] if "config" in keywords else arguments[8]
        found["model_flops"] = _model_flops(maxtext_utils, config)
        found["tokens"] = int(config.global_batch_size_to_train_on) * int(config.max_target_length)
        doing("compiling")
        result = compile_step(*arguments, **keywords)
        found.update(_measures(result))
        return result

    train_compile.jit_and_compile = measured
    words = [
        *question["arguments"],
        f"compile_topology={NAME}",
        f"compile_topology_num_slices={question['slices']}",
        "base_output_directory=output",
        "run_name=fit",
    ]
    doing("tracing the training step")
    try:
        train_compile.main(["compile_step", *words])
    except (MemoryError, OSError):  # this machine's fault, and no answer
        raise
    except (Exception, SystemExit) as error:
        return {**found, **_of_error(error), "parts": _parts()}
    return {**found, "outcome": "compiled", "parts": _parts()}


def _model_flops(maxtext_utils: Any, config: Any) -> float | None:
    """What MaxText counts for one step of one device: the forward and the backward pass, nothing computed again.

    XLA's own count has the body of each loop once, whatever the number of its passes, and MaxText's layers are a loop.
    """
    try:
        return float(maxtext_utils.calculate_tflops_training_per_device(config, log=False)[0]) * 1e12
    except Exception as error:
        print(f"MaxText cannot count the operations of this model: {error!r}", file=sys.stderr)
        return None


def _measures(compiled_step: Any) -> dict[str, Any]:
    memory, cost = compiled_step.memory_analysis(), compiled_step.cost_analysis() or {}
    return {
        "peak_bytes": memory.peak_memory_in_bytes,
        "argument_bytes": memory.argument_size_in_bytes,
        "output_bytes": memory.output_size_in_bytes,
        "alias_bytes": memory.alias_size_in_bytes,
        "temporary_bytes": memory.temp_size_in_bytes,
        "xla_flops": cost.get("flops"),
        "xla_bytes": cost.get("bytes accessed"),
    }


def _of_error(error: BaseException) -> dict[str, Any]:
    text = str(error)
    if sizes := TOO_LARGE.search(text):
        numbers = [group for group in sizes.groups() if group is not None]
        required, available = (_bytes(*numbers[:2]), _bytes(*numbers[2:4]))
        return {"outcome": "too large", "required_bytes": required, "available_bytes": available}
    return {"outcome": "refused", "kind": type(error).__name__, "message": text[:4000]}


def _bytes(number: str, unit: str) -> int:
    return round(float(number) * UNITS[unit])


def _parts() -> list[dict[str, Any]]:
    """What is in a device's memory at the peak: the sums of the model's parts, then the largest temporaries, each with
    its shape and the operation that it comes from. Empty if the compiler did not come so far.
    """
    live, values, module = (
        _dumped(end) for end in ("-live-range.txt", "-buffer-assignment.txt", "after_optimizations.txt")
    )
    if not (live and values and module):
        return []
    shapes = {match[1].replace("{}", ""): match[2] for line in values if (match := VALUE.match(line))}
    operations = {match[1]: match[3] for line in module if (match := OPERATION.match(line))}
    arguments = {match[1] for line in module if (match := OPERATION.match(line)) and match[2] == "parameter"}
    sums = {"parameters": 0, "optimizer state": 0, "batch": 0}
    temporaries = []
    for name, index, size in _at_the_peak(live):
        operation = operations.get(name, "")
        if name in arguments and (part := _part_of_the_state(operation)):
            sums[part] += size
            continue
        temporaries.append(
            {
                "bytes": size,
                "name": "temporary",
                "shape": shapes.get(f"{name}{{{index}}}" if index else name, ""),
                "operation": operation,
            }
        )
    temporaries.sort(key=lambda part: -part["bytes"])
    rest = sum(part["bytes"] for part in temporaries[MOST_PARTS:])
    parts = [{"bytes": size, "name": name} for name, size in sums.items() if size]
    return [*parts, *temporaries[:MOST_PARTS], *([{"bytes": rest, "name": "other temporaries"}] if rest else [])]


def _part_of_the_state(operation: str) -> str | None:
    """Which part of the step's arguments an operation names: `state['model']...`, `state.optimizer...`, `data...`."""
    words = re.findall(r"\w+", operation)
    if words[:1] == ["data"]:
        return "batch"
    if words[:1] != ["state"]:
        return None
    return "optimizer state" if "optimizer" in words[:2] or "opt_state" in words[:3] else "parameters"


def _at_the_peak(lines: list[str]) -> list[tuple[str, str, int]]:
    """Instruction, index in its tuple, bytes."""
    begin = next((number for number, line in enumerate(lines) if PEAK.match(line)), len(lines))
    found = []
    for line in lines[begin + 1 :]:
        match = LIVE.match(line)
        if match is None:
            break
        found.append((match[1], match[2], int(match[3])))
    return found


def _dumped(end: str) -> list[str]:
    files = sorted(DUMP.glob(f"*jit_train_step*{end}"))
    return files[0].read_text(errors="replace").splitlines() if files else []


if __name__ == "__main__":
    main()
