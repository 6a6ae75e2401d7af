"""Whether models for vLLM fit into a machine."""

import pytest

from peagle_cli.engine.memory import Gpu, gpus
from peagle_cli.engine.vllm.fit import need_of, why_not
from peagle_cli.models.served import SERVED

B200 = Gpu("B200", 180 * 2**30)
H100 = Gpu("H100", 80 * 2**30)
SMALL = Gpu("RTX", 16 * 2**30)


@pytest.mark.parametrize("name", SERVED)
def test_every_model_fits_into_the_gpu_of_the_published_figures(name: str) -> None:
    assert why_not(SERVED[name], (), gpus=(B200,), ram=None, cpu=False) == ""


def test_a_small_gpu_holds_none_of_them_and_says_why() -> None:
    reason = why_not(SERVED["gpt-oss-20b"], (), gpus=(SMALL,), ram=None, cpu=False)
    assert reason.startswith("it needs 20.2 GB (weights 13.8 GB, drafter 3.6 GB, cache for 32,768 tokens 0.8 GB")
    assert reason.endswith("vLLM may take 15.5 GB of RTX")


def test_weights_are_spread_over_as_many_gpus_as_the_flags_say() -> None:
    model, two = SERVED["gpt-oss-120b"], (SMALL,) * 4 + (H100,)
    assert why_not(model, (), gpus=two, ram=None, cpu=False)
    assert not why_not(model, ("--tensor-parallel-size", "5"), gpus=two, ram=None, cpu=False)
    assert not why_not(model, ("-tp=2", "--pipeline-parallel-size=3"), gpus=two, ram=None, cpu=False)


def test_flags_change_what_is_needed_and_what_may_be_taken() -> None:
    model = SERVED["qwen3-8b"]
    assert need_of(model, ("--max-model-len", "8192")).cache == need_of(model).cache // 4
    gpu = (Gpu("RTX", 24 * 2**30),)
    assert why_not(model, (), gpus=gpu, ram=None, cpu=False)
    assert not why_not(
        model, ("--max-model-len", "2048", "--gpu-memory-utilization", "0.95"), gpus=gpu, ram=None, cpu=False
    )


def test_on_processors_memory_counts() -> None:
    model = SERVED["gpt-oss-20b"]
    assert why_not(model, (), gpus=None, ram=16 * 10**9, cpu=True).endswith("and 16.0 GB of memory are free")
    assert not why_not(model, (), gpus=(), ram=32 * 10**9, cpu=True)


def test_no_gpu_is_told_and_an_unknown_one_is_left_to_vllm() -> None:
    model = SERVED["gpt-oss-20b"]
    assert why_not(model, (), gpus=(), ram=None, cpu=False) == "there is no GPU here"
    assert why_not(model, (), gpus=None, ram=None, cpu=False) == ""


def test_only_visible_gpus_count(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    smi = tmp_path_factory.mktemp("bin") / "nvidia-smi"
    smi.write_text("#!/bin/sh\nprintf '0, GPU-12, A, 1024\\n1, GPU-34, B, 2048\\n'\n")
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", str(smi.parent), prepend=":")
    assert gpus() == (Gpu("A", 2**30), Gpu("B", 2**31))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert gpus() == (Gpu("B", 2**31),)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-12")
    assert gpus() == (Gpu("A", 2**30),)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert gpus() == ()
