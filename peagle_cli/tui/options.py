"""What `peagle chat` was asked for, on the screen and without. Light: imports nothing of Textual."""

import msgspec

from peagle_cli.engine.protocol import EngineSpec, Message
from peagle_cli.trace.events import Method, Sampling


class ChatOptions(msgspec.Struct, frozen=True):
    """How a chat starts.

    `prompt` is asked as soon as the engine is ready. `method` and `depth` of None leave the choice to what the
    opened engine can do; with `auto` the depth follows the advice while a reply is being generated. `system` is the
    conversation's system message, None for the model's own. `theme` is the name of the screen's colours, None for the
    default. `record` keeps a recording. `history` are the turns behind the system message that the conversation begins
    with, and `continues` names the recording that they come from.
    """

    spec: EngineSpec
    prompt: str | None = None
    method: Method | None = None
    depth: int | None = None
    auto: bool = False
    sampling: Sampling = Sampling()
    max_tokens: int = 512
    system: str | None = None
    theme: str | None = None
    record: bool = True
    history: tuple[Message, ...] = ()
    continues: str | None = None
