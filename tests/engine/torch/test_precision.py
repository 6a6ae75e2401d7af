"""Weights at 4 bits: the numbers of the GGUF file, kept once packed, and refused where there are none."""

import shutil
from pathlib import Path

import msgspec
import pytest
import torch

from peagle_cli.engine.protocol import EngineSpec
from peagle_cli.engine.torch import hardware
from peagle_cli.engine.torch.engine import TorchEngine
from peagle_cli.engine.torch.linear import FEW_ROWS, Int4Linear, Int8Linear
from peagle_cli.engine.torch.packed import PackedMatrices
from peagle_cli.engine.torch.weights import Weights
from peagle_cli.errors import BadInputError
from peagle_cli.models import store
from peagle_cli.models.gguf import q4_matrices

CPU = torch.device("cpu")
GATE, UP = (f"model.layers.3.mlp.{part}_proj.weight" for part in ("gate", "up"))
QUERIES = "model.layers.3.self_attn.q_proj.weight"

with_kernel = pytest.mark.skipif(not hardware.has_int4(CPU), reason="this processor has no kernel for 4-bit weights")


@pytest.fixture(scope="module")
def gguf_file(default_target: Path) -> Path:
    file = store.gguf_file(None)
    assert file is not None
    assert file.parent == default_target
    return file


def test_the_files_4_bit_numbers_are_those_of_the_converted_model(gguf_file: Path, default_target: Path) -> None:
    matrices, weights = q4_matrices(gguf_file), Weights(default_target, CPU, torch.float32)
    for name in (QUERIES, GATE):
        numbers, scales, minima = (torch.from_numpy(part).float() for part in matrices[name])
        scales, minima = (part.repeat_interleave(32, 1) for part in (scales, minima))
        assert torch.equal((numbers * scales + minima).bfloat16().float(), weights.tensor(name))


@with_kernel
def test_few_and_many_rows_meet_the_same_weights(gguf_file: Path, default_target: Path) -> None:
    product = Weights(default_target, CPU, torch.bfloat16, PackedMatrices(gguf_file)).linear(GATE, UP)
    assert isinstance(product, Int4Linear)
    rows = torch.randn(FEW_ROWS + 1, 576, generator=torch.Generator().manual_seed(0)).bfloat16()
    few, many = product(rows[:-1]), product(rows)[:-1]
    torch.testing.assert_close(few, many, rtol=2e-2, atol=0.1)
    assert torch.equal(product.weight[:1536], Weights(default_target, CPU, torch.bfloat16).tensor(GATE))


@with_kernel
def test_packing_is_done_once(gguf_file: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(gguf_file, tmp_path))
    first = PackedMatrices(copy)
    assert not first.are_kept
    packed = first.stack([GATE, UP])
    first.keep()
    copy.write_bytes(b"")  # not read again
    again = PackedMatrices(copy)
    assert again.are_kept
    kept = again.stack([GATE, UP])
    assert packed and kept
    assert all(torch.equal(*pair) for pair in zip(packed, kept, strict=True))


def test_8_bit_rows_do_not_depend_on_each_other_and_are_close() -> None:
    random = torch.Generator().manual_seed(0)
    weight, rows = torch.randn(64, 96, generator=random).bfloat16(), torch.randn(11, 96, generator=random).bfloat16()
    product = Int8Linear(weight)
    single = torch.cat([product(row[None]) for row in rows])
    assert torch.equal(product(rows), single)
    torch.testing.assert_close(single, rows @ weight.T, rtol=2e-2, atol=0.3)


def test_inputs_of_8_bit_products_may_begin_anywhere_in_memory() -> None:
    torch.manual_seed(0)
    product = Int8Linear(torch.randn(8, 64).bfloat16())
    x = torch.randn(2 * 64 + 1).bfloat16()[1:].view(2, 64)
    assert torch.equal(product(x), product(x.clone()))


@with_kernel
def test_a_damaged_file_of_packed_weights_is_made_anew(gguf_file: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(gguf_file, tmp_path))
    first = PackedMatrices(copy)
    first.stack([GATE])
    first.keep()
    (kept,) = set(tmp_path.iterdir()) - {copy}
    kept.write_bytes(kept.read_bytes()[:1000])
    again = PackedMatrices(copy)
    assert not again.are_kept
    again.stack([GATE])
    again.keep()
    assert PackedMatrices(copy).are_kept


@with_kernel
def test_the_default_says_how_weights_are_kept() -> None:
    assert TorchEngine.open(EngineSpec()).info.machine.precision == "bfloat16 with int4 weights"


def test_4_bits_that_a_model_does_not_have_are_refused(tiny_spec: EngineSpec) -> None:
    with pytest.raises(BadInputError, match="not at 4 bits"):
        TorchEngine.open(msgspec.structs.replace(tiny_spec, dtype="int4"))
