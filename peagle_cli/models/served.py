"""The large targets known by name that run in vLLM: their published drafters, what they need, and from where that is.

Plain data. Sizes are bytes. The hub's names and the drafters' sizes were read from the model pages named beside them.
"""

from collections.abc import Iterable

import msgspec

from peagle_cli.errors import BadInputError
from peagle_cli.trace.events import Method

CONTEXT = 32_768
"""Tokens that a server keeps room for, as in the launch lines on the model pages."""


class PublishedDrafter(msgspec.Struct, frozen=True):
    """`repository` on the Hugging Face hub, and the `depth` that its makers recommend.

    `weights` are its bytes in bfloat16, and `weights_from` says where that number is from.
    """

    method: Method
    repository: str
    depth: int
    weights: int
    weights_from: str


class ServedModel(msgspec.Struct, frozen=True):
    """A target for vLLM, called `name`; `title` is what people read.

    `weights` are the checkpoint's bytes, as its index counts them. Each of `layers` keeps keys and values of `kv_heads`
    heads with `head_dim` channels, `cache_bytes` a value. `gpu_flags` are the flags of its makers' launch line that
    change the speed; those that would hide single steps (asynchronous scheduling, a stream interval) are left out.
    """

    name: str
    title: str
    repository: str
    weights: int
    layers: int
    kv_heads: int
    head_dim: int
    cache_bytes: int
    drafters: tuple[PublishedDrafter, ...]
    gpu_flags: tuple[str, ...]

    @property
    def download(self) -> int:
        """Bytes to fetch: the target and its drafters."""
        return self.weights + sum(drafter.weights for drafter in self.drafters)

    def cache(self, tokens: int) -> int:
        """Bytes of keys and values for a context of `tokens`, as if every layer kept all of it.

        GPT-OSS's sliding-window layers keep less: the true number is between half of this and this.
        """
        return 2 * self.layers * self.kv_heads * self.head_dim * self.cache_bytes * tokens


_POST_FLAGS = ("--kv-cache-dtype", "fp8", "--no-enable-prefix-caching")
"""Of the launch line in the P-EAGLE post. Its VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8=1 is gone: vLLM chooses by itself."""

_BY_SHAPE = "estimated from the layers, head and embeddings it must have"

_MODELS: Iterable[ServedModel] = (
    ServedModel(
        name="gpt-oss-20b",
        title="GPT-OSS-20B",
        repository="openai/gpt-oss-20b",
        weights=13_761_264_768,
        layers=24,
        kv_heads=8,
        head_dim=64,
        cache_bytes=1,
        drafters=(
            PublishedDrafter(
                "peagle", "amazon/GPT-OSS-20B-P-EAGLE", 7, 3_600_000_000, "1.8 billion parameters on its page"
            ),
            PublishedDrafter("eagle3", "RedHatAI/gpt-oss-20b-speculator.eagle3", 3, 1_800_000_000, _BY_SHAPE),
        ),
        gpu_flags=_POST_FLAGS,
    ),
    ServedModel(
        name="gpt-oss-120b",
        title="GPT-OSS-120B",
        repository="openai/gpt-oss-120b",
        weights=65_248_815_744,
        layers=36,
        kv_heads=8,
        head_dim=64,
        cache_bytes=1,
        drafters=(
            PublishedDrafter(
                "peagle", "amazon/gpt-oss-120b-p-eagle", 5, 3_400_000_000, "1.7 billion parameters on its page"
            ),
            PublishedDrafter("eagle3", "RedHatAI/gpt-oss-120b-speculator.eagle3", 5, 1_800_000_000, _BY_SHAPE),
        ),
        gpu_flags=_POST_FLAGS,
    ),
    ServedModel(
        name="qwen3-coder-30b-a3b",
        title="Qwen3-Coder-30B-A3B",
        repository="Qwen/Qwen3-Coder-30B-A3B-Instruct",
        weights=61_064_245_248,
        layers=48,
        kv_heads=4,
        head_dim=128,
        cache_bytes=2,
        drafters=(
            PublishedDrafter("peagle", "amazon/Qwen3-Coder-30B-A3B-Instruct-P-EAGLE", 5, 2_000_000_000, _BY_SHAPE),
            PublishedDrafter(
                "eagle3",
                "JinnP/SGLang-EAGLE3-Qwen3-Coder-30B-A3B-Instruct",
                5,
                350_000_000,
                "about 350 MB on its page",
            ),
        ),
        gpu_flags=("--no-enable-prefix-caching",),
    ),
    ServedModel(
        name="qwen3-8b",
        title="Qwen3-8B",
        repository="Qwen/Qwen3-8B",
        weights=16_381_470_720,
        layers=36,
        kv_heads=8,
        head_dim=128,
        cache_bytes=2,
        drafters=(
            PublishedDrafter("peagle", "RedHatAI/Qwen3-8B-speculator.peagle", 7, 3_200_000_000, _BY_SHAPE),
            PublishedDrafter("eagle3", "RedHatAI/Qwen3-8B-speculator.eagle3", 3, 2_000_000_000, _BY_SHAPE),
        ),
        gpu_flags=("--no-enable-prefix-caching",),
    ),
)

SERVED: dict[str, ServedModel] = {model.name: model for model in _MODELS}


def check_embedded(name: str | None, hint: str) -> None:
    """Raise `BadInputError`, with `hint`, for a model that the embedded engine is not to be asked for."""
    if served := find_served(name):
        raise BadInputError(f"{served.title} is too large for the embedded engine.", hint)


def find_served(name: str | None) -> ServedModel | None:
    """The model for vLLM called `name`, in any case."""
    return SERVED.get(name.lower()) if name else None
