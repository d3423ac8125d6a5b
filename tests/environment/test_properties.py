"""No input makes anything but an environment or a refusal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from environment import Environment, Refused
from environment.settings.model import KEYS
from environment.tpu import UnknownTpuType, slice_for, tpu_types
from tests.examples import examples
from tests.loading import VALID, load_bytes, load_text

QUICK = settings(max_examples=examples(150), suppress_health_check=[HealthCheck.too_slow])
ROOT = Path(__file__).parent.parent.parent

NEARLY = st.sampled_from(
    [
        *("", "0", "1", "-1", "2", "64", "1.5", "٣", "²", "1e9", "9" * 30, "true", "FALSE", "my-project", "default"),
        *("us-east5", "us-east5-b", "us-central1-ai1a", "v6e-16", "v4-8", "tpu7x-2", "v5p-4x4x0", "n2-standard-8"),
        *("10.0.0.0/8", "10.0.0.0/20", "10.0.0.0/99", "10.0.0.1/31", "0.0.0.0/0", "255.255.255.255/32", "::/0"),
        *("2030-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "24:00", "1.34", "REGULAR"),
        *("oci://x", "a" * 63, "a" * 64, "google", "$HOME", "'", '"', "#", "\x00", "\udcff", "\u2028", "İ", "ﬁ"),
    ]
)
TABS_AND_SPACES = " \t"
VALUES = st.one_of(NEARLY, st.text(max_size=40), st.from_regex(r"[a-z0-9.:/x-]{1,24}", fullmatch=True))


def outcome(content: bytes, process_env: dict[str, str]) -> Environment | Refused:
    try:
        return load_bytes(content, process_env)
    except Refused as refused:
        assert refused.problems
        for problem in refused.problems:
            key, colon, message = problem.partition(": ")
            assert key and colon and message
            problem.encode()  # can be printed for every input
            assert problem.isprintable()
        return refused


@QUICK
@given(st.binary(max_size=300))
def test_any_bytes_as_the_file(content: bytes) -> None:
    outcome(content, {})
    outcome(b"PROJECT_ID=my-project\n" + content, {})


@QUICK
@given(st.text(alphabet="PROJECT_IDZONE=my-project\n\r\t #'\"$\\\ufeff\x00export", max_size=80))
def test_any_text_as_the_file(text: str) -> None:
    outcome(text.encode(), {})


@QUICK
@given(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6))
def test_any_values_in_the_process_environment(process_env: dict[str, str]) -> None:
    outcome(b"PROJECT_ID=my-project\n", process_env)


@QUICK
@given(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6))
def test_any_values_in_the_file(values: dict[str, str]) -> None:
    lines = {**VALID, **values}
    outcome("".join(f"{key}={value}\n" for key, value in lines.items()).encode("utf-8", "surrogateescape"), {})


@QUICK
@given(st.text(max_size=30))
def test_any_key(key: str) -> None:
    outcome(f"PROJECT_ID=my-project\n{key}=x\n".encode("utf-8", "surrogatepass"), {})


@QUICK
@given(
    st.integers(-1, 20_000),
    st.integers(-1, 1_100),
    st.integers(7, 32),
    st.integers(7, 32),
    st.sampled_from([name for generation in ("v4", "v5e", "v5p", "v6e", "tpu7x") for name in tpu_types(generation)]),
)
def test_any_size_of_fleet_and_ranges(pools: int, nodes: int, subnet: int, pods: int, tpu_type: str) -> None:
    process_env = {
        "NUM_TPU_POOLS": str(pools),
        "CPU_MAX_NODES": str(nodes),
        "SUBNET_CIDR": f"10.0.0.0/{subnet}",
        "PODS_CIDR": f"128.0.0.0/{pods}",
        "TPU_TYPE": tpu_type,
    }
    result = outcome(b"PROJECT_ID=my-project\n", process_env)
    if isinstance(result, Environment):
        assert result.settings.pods_cidr.num_addresses >= result.groups[0].hosts * 32 + nodes * 256
        assert result.settings.subnet_cidr.num_addresses >= result.groups[0].hosts + nodes + 4


@QUICK
@given(
    st.one_of(
        st.text(max_size=30),
        st.from_regex(
            r"(v[4-7][a-z]?|tpu7x|v5litepod|ct[0-9a-z]+-[a-z]+-[0-9]t)[-:_]([0-9]{0,13}|[0-9x]{0,13})", fullmatch=True
        ),
    )
)
def test_a_tpu_type_is_a_slice_or_the_hint_is_one(tpu_type: str) -> None:
    try:
        slice_ = slice_for(tpu_type)
    except UnknownTpuType as error:
        if "did you mean '" in str(error):
            assert slice_for(str(error).rpartition("did you mean '")[2].removesuffix("'?"))
    else:
        assert slice_.hosts * slice_.chips_per_host == slice_.chips
        assert slice_for(slice_.tpu_type) == slice_


@QUICK
@given(st.text(alphabet=st.characters(codec="ascii", exclude_characters="\n\r\"'$#\x00"), max_size=30))
def test_quotes_change_nothing(value: str) -> None:
    bare = outcome(f"PROJECT_ID=my-project\nNAMESPACE={value}\n".encode(), {})
    quoted = outcome(f'PROJECT_ID=my-project\nNAMESPACE="{value.strip(TABS_AND_SPACES)}"\n'.encode(), {})
    assert isinstance(bare, Environment) == isinstance(quoted, Environment)


def test_the_same_settings_load_as_the_same_environment() -> None:
    assert load_text("PROJECT_ID=my-project\n") == load_text("PROJECT_ID=my-project\n")


def test_importing_the_environment_needs_the_standard_library_alone() -> None:
    program = "import sys, environment; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-S", "-c", program], cwd=ROOT, check=True, capture_output=True, text=True)
    foreign = set(done.stdout.split()) - set(sys.stdlib_module_names) - {"environment", "vocabulary", "__main__"}
    assert not foreign
