"""`peagle bench` as its users run it, on the tiny model."""

from pathlib import Path

import msgspec

from peagle_cli.bench.report import Report
from tests.cli.program import Program

SHORT = ("--part", "speed", "--depth", "1", "--limit", "1", "--tokens", "32")


def test_tells_figures_as_tables_and_saves_them(program: Program, tiny_options: list[str], tmp_path: Path) -> None:
    saved = tmp_path / "figures.json"
    done = program.run("bench", *tiny_options, *SHORT, "--save", str(saved))
    assert done.returncode == 0, done.stderr
    report = msgspec.json.decode(saved.read_bytes(), type=Report)
    assert [speed.name for speed in report.speeds] == ["peagle plain", "peagle P-EAGLE 1", "peagle EAGLE-3 1"]
    assert (report.prompts, report.tokens, report.inside, report.screen) == (1, 32, None, None)
    assert all(speed.name in done.stdout for speed in report.speeds)


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured(program: Program, tmp_path: Path) -> None:
    done = program.run("bench", "--save", str(tmp_path / "missing" / "figures.json"))
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    assert done.stdout == ""
