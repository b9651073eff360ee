"""A sample of the campaigns: tests/torch/campaigns runs all of them, for hours."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "campaigns"))

import operators
import scenarios

OPERATORS = (
    *("add", "prod", "masked_fill", "sort", "index_put", "scatter_add", "cumprod", "linalg.svdvals", "linalg.pinv"),
    *("fft.hfft", "as_strided.partial_views", "nn.functional.batch_norm", "nn.functional.scaled_dot_product_attention"),
    *("nn.functional.conv_transpose2d", "sparse.sampled_addmm", "to_sparse", "istft", "broadcast_shapes", "ormqr"),
)

SCENARIOS = (
    *("amp_with_scaler", "ema_of_weights", "sharpness_aware", "lbfgs", "gan_with_two_optimizers", "q_learning"),
    *("checkpointing", "selective_checkpointing", "straight_through_under_vmap", "hooks_of_all_kinds"),
    *("saved_tensor_hooks", "hessians", "in_place_in_many_ways", "forward_mode", "model_agnostic_meta_learning"),
    *("jvp_and_linearize", "parametrizations", "pruning", "lazy_modules", "recurrent", "quantization_aware"),
    *("traced_and_frozen", "other_modes_around", "storage_tricks", "numbers_decide", "backward_in_a_thread"),
    *("coroutines", "a_generator_that_waits_between_layers", "an_alarm_in_the_middle", "recordings_in_each_other"),
    *("a_function_that_runs_a_model_inside", "a_wrapper_of_ones_own", "compiled_with_breaks", "tensor_parallel"),
    *("a_worker_that_was_there_before", "a_scaler_that_skips_a_step", "an_older_library", "odd_arguments_and_results"),
    *("a_pipeline_of_threads", "halves_in_a_pool", "fsdp2", "ddp_with_a_communication_hook", "custom_operators"),
)


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_of_pytorchs_own_database(name: str) -> None:
    assert operators.check(name)["verdict"] == "faithful"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SCENARIOS)
def test_what_people_do_besides_calling_a_model(name: str) -> None:
    found = scenarios.check(name)
    assert (found["verdict"], found["compared"]) == ("faithful", 1)
