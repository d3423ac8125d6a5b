"""A training with MaxText that is small enough for tests, and the slices that it runs on."""

from __future__ import annotations

from tests.fleets import one_group, with_fleet

ONE_SLICE_OF_TWO_HOSTS = with_fleet(one_group("type: v5p-16, slices: 1, zone: us-east5-a"))
TWO_SLICES_OF_ONE_HOST = with_fleet(one_group("type: v5p-8, slices: 2, zone: us-east5-a"))

# What differs from a run on TPUs: the model, and that nothing of Google Cloud is here.
TINY = {
    "model_name": "gpt3-52k",
    "max_target_length": "32",
    "learning_rate": "0.01",
    "warmup_steps_fraction": "0",
    "gcs_metrics": "false",
    "enable_goodput_recording": "false",
    "jax_cache_dir": "",
    "log_period": "1",
}
