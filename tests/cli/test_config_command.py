"""`peagle config`: what is in force, and the file that explains every setting."""

import re

from peagle_cli import settings
from tests.cli.program import Program


def test_says_where_each_setting_comes_from(program: Program) -> None:
    program.config.parent.mkdir(parents=True)
    program.config.write_text('theme = "light"\ndepth = 3\nmouse = false\n[keys]\n"chat.pause" = "f8"\n')
    done = program.run("config", environment={"PEAGLE_DEPTH": "5"})
    rows = [re.split(r"\s{2,}", line.strip()) for line in done.stdout.splitlines()]
    assert [row[0] for row in rows] == list(settings.Settings.__struct_fields__)
    assert ["theme", '"light"', "config.toml"] in rows
    assert ["depth", "5", "PEAGLE_DEPTH"] in rows
    assert ["max_tokens", "512", "default"] in rows
    assert ["mouse", "false", "config.toml"] in rows
    assert rows[-1][1:] == ['{"chat.pause" = "f8"}', "config.toml"]


def test_the_file_it_writes_explains_every_setting_and_changes_none(program: Program) -> None:
    assert program.run("config", "--init").returncode == 0
    text = program.config.read_text()
    assert settings.read(program.config) == {}
    program.config.write_text(re.sub(r'^# (?=[a-z_]+ = |"[a-z.-]+" = )', "", text, flags=re.MULTILINE))
    made = settings.read(program.config)
    assert {*made, "mouse"} == set(settings.Settings.__struct_fields__)  # mouse as it is by default
    assert made["keys"]["chat.pause"] == "f5"
    assert program.run("config", "--init").returncode == 2


def test_edits_in_the_users_editor_and_says_what_is_wrong(program: Program) -> None:
    editor = {"VISUAL": "sh -c 'echo depth = 3 >> \"$0\"'"}
    program.config.parent.mkdir(parents=True)
    program.config.write_text("")
    assert program.run("config", "--edit", environment=editor).returncode == 0
    assert settings.read(program.config) == {"depth": 3}
    done = program.run("config", "--edit", environment=editor)
    assert done.returncode == 2
    assert str(program.config) in done.stderr
