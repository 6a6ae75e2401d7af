"""Replies to compare: the events of several lanes, sorted by prompt and by how the lane drafts."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from peagle_cli.trace.events import METHOD_NAMES, DraftBatch, Event, Finished, Method, Started
from peagle_cli.trace.metrics import Metrics

Setting = tuple[Method, int]
"""A method and a depth: what sets the lanes of a comparison apart."""

PLAIN: Setting = ("none", 0)


def name_of(setting: Setting) -> str:
    """A lane's name for people: "plain", "P-EAGLE 7"."""
    method, depth = setting
    return METHOD_NAMES[method] if method == "none" else f"{METHOD_NAMES[method]} {depth}"


@dataclass
class Reply:
    """A lane's answer to one prompt; `finished` is None until it has come to its end."""

    started: Started
    batches: list[DraftBatch] = field(default_factory=list)
    metrics: Metrics = field(default_factory=Metrics)
    finished: Finished | None = None

    @property
    def setting(self) -> Setting:
        """The lane's method and depth."""
        return (self.started.method, self.started.depth) if self.started.method != "none" else PLAIN

    @property
    def text(self) -> str:
        """What it says."""
        return "".join(token.text for batch in self.batches for token in batch.tokens)

    @property
    def context(self) -> int:
        """Tokens of context at the end."""
        return len(self.started.prompt_ids) + self.metrics.tokens

    def add(self, event: Event) -> None:
        """Take one more of its events into account."""
        self.metrics.add(event)
        if isinstance(event, DraftBatch):
            self.batches.append(event)
        elif isinstance(event, Finished):
            self.finished = event


class Round:
    """One prompt, answered by every lane: the lanes' events, in any order."""

    def __init__(self, category: str, events: Iterable[Event] = ()) -> None:
        self.category = category
        self._by_lane: dict[str, Reply] = {}
        for event in events:
            self.add(event)

    def add(self, event: Event) -> None:
        """Take one more event into account."""
        if isinstance(event, Started):
            self._by_lane[event.lane] = Reply(event)
        else:
            self._by_lane[event.lane].add(event)

    def events(self) -> Iterator[Event]:
        """What its lanes did, one lane after the other."""
        for reply in self._by_lane.values():
            yield reply.started
            yield from reply.batches
            if reply.finished:
                yield reply.finished

    @property
    def replies(self) -> dict[Setting, Reply]:
        """The replies that began, by method and depth."""
        return {reply.setting: reply for reply in self._by_lane.values()}


def by_category(rounds: Sequence[Round]) -> dict[str, list[Round]]:
    """The rounds of each category; empty unless there are several categories."""
    sorted_rounds: dict[str, list[Round]] = {}
    for each in rounds:
        sorted_rounds.setdefault(each.category, []).append(each)
    return sorted_rounds if len(sorted_rounds) > 1 else {}
