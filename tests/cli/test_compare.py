"""`peagle compare` in a pipe, on the tiny model, whose drafters are never right."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from safetensors.numpy import load_file, save_file

from peagle_cli.cli.compare import join_numbers, parse_numbers
from peagle_cli.cli.compare_report import render
from peagle_cli.engine.protocol import EngineSpec
from peagle_cli.errors import BadInputError
from peagle_cli.trace.comparison import LaneReport, Report, compare
from peagle_cli.trace.events import Started, decode
from peagle_cli.trace.metrics import Summary
from peagle_cli.trace.profile import Profile
from peagle_cli.trace.rounds import Round
from tests.cli.program import Program

SHORT = ("--max-tokens", "12")


@pytest.fixture(scope="module")
def report(tiny_options: list[str], tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Of two depths on one prompt, as the program prints it."""
    program = Program(tmp_path_factory.mktemp("compare"))
    done = program.run("compare", *tiny_options, *SHORT, "--depth", "2", "4", "Hello", "--output", "json")
    assert done.returncode == 0, done.stderr
    assert "Round 1 of 1" in done.stderr
    return msgspec.json.decode(done.stdout, type=Report)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--depth", "3", "7", "Hello there"],
        ["--depth", "3,7", "Hello there"],
        ["--depth", "3", "--depth", "7", "Hello there"],
        ["Hello there", "--depth", "3", "7"],
        ["--depth", "3", "7", "--", "Hello there"],
    ],
)
def test_depths_can_be_given_in_three_ways(arguments: list[str]) -> None:
    joined = join_numbers(arguments)
    values = [joined[i + 1] for i, word in enumerate(joined) if word == "--depth"]
    assert parse_numbers(values, "depth") == (3, 7)
    assert "Hello there" in joined


def test_a_number_behind_two_dashes_is_a_prompt() -> None:
    assert join_numbers(["--depth", "3", "--", "7"]) == ["--depth", "3", "--", "7"]
    with pytest.raises(BadInputError, match="'three'"):
        parse_numbers(["three"], "depth")


def test_json_has_every_lane_with_the_names_of_chat(report: Report) -> None:
    settings = [(lane.method, lane.depth) for lane in report.lanes]
    assert settings == [("none", 0), ("eagle3", 2), ("eagle3", 4), ("peagle", 2), ("peagle", 4)]
    assert set(Summary.__struct_fields__) <= set(LaneReport.__struct_fields__)
    assert report.lanes[0].speedup == 1
    assert all(lane.memory and lane.memory.target_weights > 0 for lane in report.lanes)
    assert report.machine.dtype == "float32"
    assert report.lossless.verdict == "identical"
    assert report.advice is not None
    assert len(report.advice.predictions) == 21
    assert all(prediction.mean_acceptance_length == 1 for prediction in report.advice.predictions)


def test_events_give_the_same_figures(program: Program, tiny_options: list[str], tmp_path: Path) -> None:
    file = tmp_path / "prompts.txt"
    file.write_text("One\nTwo\n")
    run = ("compare", *tiny_options, *SHORT, "--depth", "2", "--prompts", str(file))
    streamed = program.run(*run, "--output", "jsonl")
    assert streamed.returncode == 0, streamed.stderr
    events = [decode(line) for line in streamed.stdout.splitlines()]
    prompts = list(dict.fromkeys(event.prompt for event in events if isinstance(event, Started)))
    assert prompts == ["One", "Two"]
    lanes = {prompt: {e.lane for e in events if isinstance(e, Started) and e.prompt == prompt} for prompt in prompts}
    rounds = [Round("", (event for event in events if event.lane in lanes[prompt])) for prompt in prompts]
    from_events = compare(rounds, 1, {})
    reported = json.loads(program.run(*run, "--output", "json").stdout)
    exact = ("method", "depth", "tokens", "steps", "drafts", "draft_tokens", "accepted_tokens", "acceptance_histogram")
    assert [_figures(lane, exact) for lane in reported["lanes"]] == [
        [getattr(lane, name) if name != exact[-1] else list(lane.acceptance_histogram) for name in exact]
        for lane in from_events.lanes
    ]


def _figures(lane: dict[str, Any], names: tuple[str, ...]) -> list[Any]:
    return [lane[name] for name in names]


def test_table_and_markdown_name_lanes_machine_and_verdict(report: Report) -> None:
    for output in ("table", "markdown"):
        text = render(report, output)
        for expected in (
            "P-EAGLE 2",
            "EAGLE-3 4",
            "plain",
            "float32",
            "threads",
            "Same tokens in every lane",
            "Advice",
        ):
            assert expected in text, output


def test_csv_is_a_row_a_lane(report: Report) -> None:
    rows = list(csv.DictReader(io.StringIO(render(report, "csv"))))
    assert [(row["method"], row["depth"]) for row in rows[:2]] == [("none", "0"), ("eagle3", "2")]
    assert len(rows) == 5
    assert float(rows[1]["speedup"]) > 0
    assert float(rows[1]["accepted_up_to_2"]) >= 0
    assert rows[0]["dtype"] == "float32"


def test_model_output_in_a_report_steers_no_terminal(report: Report) -> None:
    evil = msgspec.structs.replace(report, verdict="\x1b[2J", notes=("\u202e",))
    for output in ("table", "markdown", "json"):
        assert "\x1b" not in render(evil, output)
        assert "\u202e" not in render(evil, output)


def test_without_a_baseline_nothing_is_held_against_it(program: Program, tiny_options: list[str]) -> None:
    done = program.run("compare", *tiny_options, *SHORT, "--no-baseline", "--depth", "2", "Hello", "--output", "json")
    report = json.loads(done.stdout)
    assert all(lane["speedup"] is None for lane in report["lanes"])
    assert report["lossless"]["verdict"] == "not checked"


def test_a_drafter_of_zeros_is_compared_like_any_other(program: Program, tiny_spec: EngineSpec, tmp_path: Path) -> None:
    source = Path(tiny_spec.drafters[0])
    (tmp_path / "zero").mkdir()
    (tmp_path / "zero" / "config.json").write_bytes((source / "config.json").read_bytes())
    tensors = load_file(source / "model.safetensors")
    zeroed = {name: tensor if name == "d2t" else 0 * tensor for name, tensor in tensors.items()}
    save_file(zeroed, tmp_path / "zero" / "model.safetensors")
    done = program.run(
        "compare", "--model", str(tiny_spec.model), "--drafter", str(tmp_path / "zero"), "--dtype", "float32",
        "--max-tokens", "20", "--depth", "3", "Hello", "--output", "json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["lanes"][1]["accepted_tokens"] == 0
    assert report["lanes"][1]["mean_acceptance_length"] == 1
    assert report["lossless"]["verdict"] == "identical"


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--depth", "x", "Hello"), "'x' is no depth"),
        (("--depth", "99", "Hello"), "99"),
        (("--method", "magic", "Hello"), "'magic'"),
        (("--prompts", "/nowhere", "Hello"), "a file of prompts"),
        (("--prompts", "/nowhere"), "/nowhere"),
        ((" ",), "empty"),
    ],
)
def test_what_cannot_be_compared_is_bad_input(
    program: Program, tiny_options: list[str], arguments: tuple[str, ...], what: str
) -> None:
    done = program.run("compare", *tiny_options, *SHORT, *arguments)
    assert done.returncode == 2
    assert what in done.stderr
    assert "Traceback" not in done.stderr


def test_settings_say_what_to_open_but_not_how_to_compare(
    program: Program, tiny_spec: EngineSpec, report: Report
) -> None:
    program.config.parent.mkdir()
    opening = f'model = "{tiny_spec.model}"\ndrafter = ["{tiny_spec.drafters[1]}"]\ndtype = "float32"\n'
    program.config.write_text(f"{opening}depth = 9\ntemperature = 1.5\n")
    done = program.run("compare", "--max-tokens", "6", "--depth", "2", "Hello", "--output", "json")
    assert done.returncode == 0, done.stderr
    made = msgspec.json.decode(done.stdout, type=Report)
    assert made.model == report.model
    assert made.sampling == report.sampling
    assert [(lane.method, lane.depth) for lane in made.lanes] == [("none", 0), ("eagle3", 2)]


def test_what_it_would_be_on_a_machine_that_was_profiled(
    program: Program, tiny_options: list[str], tmp_path: Path
) -> None:
    measured = program.run("profile", *tiny_options)
    assert measured.returncode == 0, measured.stderr
    profile = msgspec.json.decode(measured.stdout, type=Profile)
    depths = {(time.drafted, time.context) for time in profile.verify}
    assert len(depths) == 11 * 3, "every depth behind every context"
    slower = tuple(msgspec.structs.replace(time, seconds=10.0) for time in profile.verify)
    (tmp_path / "slow.json").write_bytes(msgspec.json.encode(msgspec.structs.replace(profile, verify=slower)))
    run = ("compare", *tiny_options, *SHORT, "--depth", "2", "Hello", "--simulate", str(tmp_path / "slow.json"))
    done = program.run(*run, "--output", "json")
    assert done.returncode == 0, done.stderr
    report = msgspec.json.decode(done.stdout, type=Report)
    assert report.simulated is not None
    assert report.simulated.machine == profile.machine
    assert all(lane.mean_verify_s == pytest.approx(10) for lane in report.lanes)
    assert report.advice is not None
    assert all(0 < prediction.tokens_per_second < 1 for prediction in report.advice.predictions)
    for output in ("table", "markdown"):
        assert "SIMULATED" in render(report, output)
    assert report.simulated.machine.name in render(report, "csv").splitlines()[1]
    assert program.run(*run, "--output", "jsonl").returncode == 2


def test_a_lossy_engine_ends_with_exit_code_1(
    tiny_spec: EngineSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The engine runs in this process, so that it can be broken: it believes its drafter's first token."""
    from peagle_cli.cli import app
    from peagle_cli.engine import open as opening
    from peagle_cli.engine.torch import decode
    from peagle_cli.engine.torch.engine import TorchEngine
    from peagle_cli.engine.torch.verify import Verdict

    def believing(drafts: Sequence[int], choices: Sequence[int]) -> Verdict:
        accepted = min(1, len(drafts))
        return Verdict(accepted, choices[accepted])

    monkeypatch.setenv("PEAGLE_CONFIG_DIR", str(tmp_path))
    monkeypatch.setattr(opening, "open_engine", lambda spec, on_progress: TorchEngine.open(tiny_spec))
    monkeypatch.setattr(decode, "verify_greedy", believing)
    monkeypatch.setattr("sys.argv", ["peagle", "compare", "Hello", *SHORT, "--depth", "2", "--output", "json"])
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert ended.value.code == 1
    told = capsys.readouterr()
    report = msgspec.json.decode(told.out, type=Report)
    assert report.lossless.verdict == "NOT LOSSLESS"
    assert [lane.lossy for lane in report.lossless.lanes] == [0, 1, 1]
    assert "NOT LOSSLESS" in told.err
    assert "the target itself preferred" in told.err
