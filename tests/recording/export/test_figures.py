"""CSV, JSON and Markdown: the figures of the live run, and text that stays text."""

import csv
import io
import json
from pathlib import Path

import msgspec

from peagle_cli.recording.export.as_csv import csv_of
from peagle_cli.recording.export.as_json import json_of
from peagle_cli.recording.export.as_markdown import markdown_of
from peagle_cli.trace.by_kind import AcceptanceByKind
from peagle_cli.trace.events import DraftBatch
from peagle_cli.trace.metrics import Metrics
from tests.recordings import Recorded


def hostile(recorded: Recorded, folder: Path, text: str) -> Path:
    """The recording with other words."""
    path = folder / "hostile"
    with path.open("w") as file:
        for line in map(json.loads, recorded.lines()):
            event = line.get("event", {})
            for token in (*event.get("drafted", ()), event.get("bonus", {})):
                token["text"] = text
            file.write(json.dumps(line) + "\n")
    return path


def test_csv_has_every_step(recorded: Recorded) -> None:
    rows = list(csv.DictReader(io.StringIO("".join(csv_of(recorded.path)), newline="")))
    batches = [event for told in recorded.told for event in told if isinstance(event, DraftBatch)]
    assert [(row["lane"], int(row["step"]), float(row["clock_s"])) for row in rows] == [
        (batch.lane, batch.step, batch.clock_s) for batch in batches
    ]
    assert [int(row["drafted"]) for row in rows] == [len(batch.drafted) for batch in batches]


def test_csv_gives_spreadsheets_no_formula(recorded: Recorded, tmp_path: Path) -> None:
    path = hostile(recorded, tmp_path, "=HYPERLINK(1)\x1b")
    rows = list(csv.DictReader(io.StringIO("".join(csv_of(path)), newline="")))
    assert all(row["text"].startswith("'=") for row in rows if row["text"])
    assert not any("\x1b" in row["text"] for row in rows)


def test_json_has_the_live_figures(recorded: Recorded) -> None:
    report = json.loads("".join(json_of(recorded.path)))
    assert [(reply["request"], reply["lane"]) for reply in report["replies"]] == [
        (1, "main"),
        (2, "P-EAGLE"),
        (2, "plain"),
    ]
    for reply in report["replies"]:
        told = [event for event in recorded.told[reply["request"] - 1] if event.lane == reply["lane"]]
        assert reply["metrics"] == json.loads(msgspec.json.encode(Metrics(told).summary()))
        by_kind = AcceptanceByKind(told).by_kind()
        assert reply["acceptance_by_kind"] == json.loads(msgspec.json.encode(by_kind))
        assert reply["text"] == "".join(event.text for event in told if isinstance(event, DraftBatch))


def test_markdown_fences_what_the_model_wrote(recorded: Recorded, tmp_path: Path) -> None:
    report = "".join(markdown_of(hostile(recorded, tmp_path, "\n```\n# Mine <script>\n````\n\x1b]0;x\x07")))
    fence = next(
        line for line in report.splitlines() if line.startswith("```") and line.endswith("text") and len(line) > 8
    )
    lines = report.splitlines()
    inside = lines[lines.index(fence) + 1 : lines.index(fence.removesuffix("text"), lines.index(fence))]
    assert "# Mine <script>" in inside
    assert "\x1b" not in report
    assert "\x07" not in report


def test_markdown_has_the_live_figures(recorded: Recorded) -> None:
    report = "".join(markdown_of(recorded.path))
    metrics = Metrics(recorded.told[0]).summary()
    assert f"| tokens per second | {metrics.tokens_per_second:.1f} |" in report
    assert f"| effective depth (mean acceptance length) | {metrics.mean_acceptance_length:.2f} |" in report
