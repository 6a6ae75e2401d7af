"""Reports of servers under load, and published figures beside measured ones."""

import csv
import io
import json

from peagle_cli.cli.load_report import render
from peagle_cli.trace.events import Machine, Sampling
from peagle_cli.trace.load import LoadReport, best_ratios_of, points_of, ratios_of
from tests.cli.program import Program
from tests.trace.test_load import MEASURED


def report_on(model: str) -> LoadReport:
    return LoadReport(
        engine="vllm",
        model=model,
        drafters={"peagle": "peagle", "eagle3": "eagle3"},
        machine=Machine("cpu", "A processor", "bfloat16", "bfloat16", 2),
        versions={"vllm": "0.32.0"},
        sampling=Sampling(),
        max_tokens=64,
        prompts=4,
        repeats=3,
        points=points_of(MEASURED),
        ratios=ratios_of(MEASURED),
        best_ratios=best_ratios_of(MEASURED),
    )


def test_the_table_has_speeds_by_load_and_the_ratios() -> None:
    text = render(report_on("Tiny"), "table")
    (speeds,) = [line.split() for line in text.splitlines() if line.startswith("P-EAGLE 7") and "135.0" in line]
    assert speeds == ["P-EAGLE", "7", "135.0", "450.0"]
    assert "50.0 (40.0–60.0)" in text
    (fastest,) = [line for line in text.splitlines() if line.startswith("each at its fastest")]
    assert "1.50 (1.35–1.69)" in fastest
    assert "1.25" in fastest
    (depths,) = [line.split() for line in text.splitlines() if line.startswith("  their depths")]
    assert depths == ["their", "depths", "7", "÷", "3", "3", "÷", "3"]
    assert "tokens/s by requests at once" in text
    assert "published" not in text


def test_published_figures_stand_beside_with_their_hardware() -> None:
    text = render(report_on("GPT-OSS-20B"), "table")
    assert "P-EAGLE 7 ÷ EAGLE-3 3 by requests at once, published by vLLM and AWS" in text
    assert "on one B200" in text
    assert "on one H200" in text
    (humaneval,) = [line.split() for line in text.splitlines() if line.startswith("HumanEval") and "1.53" in line]
    assert humaneval[1:] == ["1.55", "1.53", "1.45", "1.35", "1.31", "1.37", "1.23"]
    published = json.loads(render(report_on("GPT-OSS-20B"), "json"))["published"]
    assert published[0]["hardware"] == "one B200"
    assert published[0]["tokens_per_second"]["SPEED-Bench code"]["peagle"] == 858


def test_markdown_and_csv_tell_the_same() -> None:
    markdown = render(report_on("Tiny"), "markdown")
    assert "| P-EAGLE 3 | 90.0 | 500.0 |" in markdown
    rows = list(csv.DictReader(io.StringIO(render(report_on("Tiny"), "csv"))))
    assert [(row["method"], row["concurrency"]) for row in rows][:2] == [("none", "1"), ("eagle3", "1")]
    assert rows[3]["accepted_up_to_1"] == "0.6"


def test_only_servers_of_our_own_can_be_put_under_load(program: Program) -> None:
    done = program.run("compare", "--concurrency", "1", "2")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Add --engine vllm." in done.stderr
