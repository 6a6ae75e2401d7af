"""What several lanes' replies to the same prompts come to: each lane's figures, who wins, whether they are lossless.

A lane here is a method at a depth. The names are vLLM's, as in `metrics.py`. Speeds are medians over the replies, with
their quartiles; counts and seconds are added up.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median, quantiles

import msgspec

from peagle_cli.trace import verdict
from peagle_cli.trace.advice import Advice, advise
from peagle_cli.trace.costs import StepCosts
from peagle_cli.trace.events import DraftBatch, Footprint, Machine, Method, Sampling
from peagle_cli.trace.lossless import Lossless, judge
from peagle_cli.trace.metrics import Metrics
from peagle_cli.trace.profile import Profile, simulate
from peagle_cli.trace.rounds import PLAIN, Reply, Round, Setting, by_category, name_of


class Memory(msgspec.Struct, frozen=True):
    """What a lane needs, in bytes, caches at its longest context; and what drafting a step asks of attention.

    `draft_attention_mflop` are the millions of operations of a mean drafting step in the drafter's attention: every new
    slot against itself and all before it. A drafter that drafts in one pass pays for it with more layers, and so with
    more of these.
    """

    target_weights: int
    target_kv_cache: int
    drafter_weights: int
    drafter_kv_cache: int
    draft_attention_mflop: float


class CategoryFigures(msgspec.Struct, frozen=True):
    """A lane's figures on one category of prompts, as in `LaneReport`."""

    tokens_per_second: float | None
    mean_acceptance_length: float | None
    speedup: float | None


class LaneReport(msgspec.Struct, frozen=True):
    """One lane's figures over all its replies.

    `tokens_per_second` and `time_to_first_token_s` are medians over the replies; `tokens_per_second_quartiles` has a
    quarter of the replies below, a quarter above. `speedup` is the ratio of that median to plain decoding's,
    `speedup_over_eagle3` to that of the fastest EAGLE-3 lane; None where there is none. `memory` is None where the
    engine does not tell.
    """

    method: Method
    depth: int
    drafter: str | None
    replies: int
    tokens: int
    steps: int
    drafts: int
    draft_tokens: int
    accepted_tokens: int
    tokens_per_second: float | None
    tokens_per_second_quartiles: tuple[float, float] | None
    time_to_first_token_s: float | None
    mean_acceptance_length: float | None
    draft_acceptance_rate: float | None
    per_position_acceptance: tuple[float, ...]
    acceptance_histogram: tuple[int, ...]
    mean_draft_s: float | None
    mean_verify_s: float | None
    prefill_s: float
    draft_s: float
    verify_s: float
    elapsed_s: float
    speedup: float | None
    speedup_over_eagle3: float | None
    memory: Memory | None
    categories: dict[str, CategoryFigures]

    @property
    def name(self) -> str:
        """For people: "P-EAGLE 7"."""
        return name_of((self.method, self.depth))


class Simulation(msgspec.Struct, frozen=True):
    """Whose step times stand in for those of the machine that the replies were made on: the model and the machine of a
    profile, and when it was measured."""

    engine: str
    model: str
    machine: Machine
    versions: dict[str, str]
    created: str


class Report(msgspec.Struct, frozen=True):
    """A whole comparison.

    With `simulated`, every time and speed in it is simulated; only the tokens and their acceptance are of `machine`.
    `advice` is None when no reply was long enough for a step.
    """

    engine: str
    model: str
    machine: Machine
    versions: dict[str, str]
    sampling: Sampling
    max_tokens: int
    prompts: int
    repeats: int
    simulated: Simulation | None
    verdict: str
    notes: tuple[str, ...]
    lanes: tuple[LaneReport, ...]
    lossless: Lossless
    advice: Advice | None


def compare(
    rounds: Sequence[Round],
    repeats: int,
    footprints: Mapping[Method, Footprint],
    sweep: Iterable[DraftBatch] = (),
    profile: Profile | None = None,
) -> Report:
    """The report on `rounds`, at least one, each with the same lanes; every prompt has `repeats` of them.

    `footprints` may lack what is not known. `sweep` are steps at every depth, run for the sake of their costs. With
    `profile`, the report tells what it would be on that machine.
    """
    if profile:
        rounds = [Round(each.category, simulate(each.events(), profile)) for each in rounds]
        sweep = profile.steps(sweep, _typical_context(rounds))
    speeds = verdict.Speeds(rounds)
    by_setting = {setting: [each.replies[setting] for each in rounds] for setting in rounds[0].replies}
    first = rounds[0].replies[next(iter(by_setting))].started
    judged = judge(rounds)
    return Report(
        engine=first.engine,
        model=first.model,
        machine=first.machine,
        versions=first.versions,
        sampling=first.sampling,
        max_tokens=first.max_tokens,
        prompts=len(rounds) // repeats,
        repeats=repeats,
        simulated=_simulation(profile) if profile else None,
        verdict=f"{'SIMULATED: ' if profile else ''}{verdict.winner(speeds)} {judged.sentence}",
        notes=verdict.notes(rounds),
        lanes=tuple(
            _lane(setting, replies, speeds, footprints, _categories(setting, rounds))
            for setting, replies in by_setting.items()
        ),
        lossless=judged,
        advice=_advice(rounds, StepCosts(sweep), first.max_depths),
    )


def _lane(
    setting: Setting,
    replies: Sequence[Reply],
    speeds: verdict.Speeds,
    footprints: Mapping[Method, Footprint],
    categories: dict[str, CategoryFigures],
) -> LaneReport:
    pooled = Metrics(batch for reply in replies for batch in reply.batches)
    each = speeds.of(setting)
    cuts = quantiles(each, n=4, method="inclusive") if len(each) > 1 else [*each, *each, *each]
    waits = [reply.metrics.time_to_first_token_s for reply in replies]
    return LaneReport(
        method=setting[0],
        depth=setting[1],
        drafter=replies[0].started.drafter,
        replies=len(replies),
        tokens=pooled.tokens,
        steps=pooled.steps,
        drafts=pooled.drafts,
        draft_tokens=pooled.draft_tokens,
        accepted_tokens=pooled.accepted_tokens,
        tokens_per_second=speeds.median(setting),
        tokens_per_second_quartiles=(cuts[0], cuts[2]) if cuts else None,
        time_to_first_token_s=median([wait for wait in waits if wait is not None]),
        mean_acceptance_length=pooled.mean_acceptance_length,
        draft_acceptance_rate=pooled.draft_acceptance_rate,
        per_position_acceptance=pooled.per_position_acceptance,
        acceptance_histogram=pooled.summary().acceptance_histogram,
        mean_draft_s=pooled.mean_draft_s,
        mean_verify_s=pooled.mean_verify_s,
        prefill_s=pooled.prefill_s,
        draft_s=pooled.draft_s,
        verify_s=pooled.verify_s,
        elapsed_s=sum(reply.metrics.elapsed_s for reply in replies),
        speedup=speeds.ratio(setting, PLAIN),
        speedup_over_eagle3=speeds.ratio(setting, speeds.fastest("eagle3")),
        memory=_memory(setting[0], replies, footprints),
        categories=categories,
    )


def _categories(setting: Setting, rounds: Sequence[Round]) -> dict[str, CategoryFigures]:
    figures = {}
    for category, those in by_category(rounds).items():
        speeds = verdict.Speeds(those)
        pooled = Metrics(batch for each in those for batch in each.replies[setting].batches)
        figures[category] = CategoryFigures(
            speeds.median(setting), pooled.mean_acceptance_length, speeds.ratio(setting, PLAIN)
        )
    return figures


def _memory(method: Method, replies: Sequence[Reply], footprints: Mapping[Method, Footprint]) -> Memory | None:
    target, drafter = footprints.get("none"), footprints.get(method)
    if target is None or drafter is None:
        return None
    context = max(reply.context for reply in replies)
    plain = method == "none"
    return Memory(
        target_weights=target.weights,
        target_kv_cache=target.kv_cache * context,
        drafter_weights=0 if plain else drafter.weights,
        drafter_kv_cache=0 if plain else drafter.kv_cache * context,
        draft_attention_mflop=0.0 if plain else drafter.attention_flop * _attention_pairs(replies) / 1e6,
    )


def _attention_pairs(replies: Sequence[Reply]) -> float:
    """Queries times visible keys of a mean drafting step, per head and layer.

    With c tokens of context, m of them new since the last draft, and k drafted, the new slots stand at c - 1 - m to
    c + k - 3, in one pass or in several, and each sees itself and all before it.
    """
    pairs = drafts = 0
    for reply in replies:
        context = len(reply.started.prompt_ids)
        new = 0
        for batch in reply.batches:
            k = len(batch.drafted)
            if k:
                pairs += (new + k - 1) * (2 * context - new + k - 2) // 2
                drafts += 1
            new = batch.emitted + (0 if k or batch.prefill else new)
            context += batch.emitted
    return pairs / drafts if drafts else 0.0


def _typical_context(rounds: Sequence[Round]) -> int:
    """Tokens of context in the middle of a middle reply."""
    replies = [reply for each in rounds for reply in each.replies.values()]
    return round(median(reply.context - reply.metrics.tokens / 2 for reply in replies))


def _simulation(profile: Profile) -> Simulation:
    return Simulation(profile.engine, profile.model, profile.machine, profile.versions, profile.created)


def _advice(rounds: Sequence[Round], sweep: StepCosts, max_depths: Mapping[Method, int]) -> Advice | None:
    measured = _measured(rounds)
    costs = StepCosts((batch for lane in measured.values() for batch in lane), sweep)
    if not costs.known:
        return None
    advice = advise(measured, costs, max_depths)
    categories = {name: advise(_measured(those), costs, max_depths) for name, those in by_category(rounds).items()}
    return msgspec.structs.replace(advice, categories=categories)


def _measured(rounds: Sequence[Round]) -> dict[Setting, list[DraftBatch]]:
    measured: dict[Setting, list[DraftBatch]] = {}
    for each in rounds:
        for setting, reply in each.replies.items():
            measured.setdefault(setting, []).extend(reply.batches)
    return measured
