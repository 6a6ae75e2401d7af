"""What users may call a model, and what they are told when it is nothing."""

from pathlib import Path

import pytest

from peagle_cli.errors import BadInputError
from peagle_cli.models import store
from peagle_cli.models.presets import DEFAULT


def test_the_default_has_a_name_in_any_case(default_target: Path) -> None:
    assert store.target_folder("SmolLM2-135M-Instruct") == default_target
    assert default_target == store.preset_folder(DEFAULT)


def test_a_folder_is_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert store.target_folder(str(tmp_path)) == tmp_path
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    assert store.target_folder("models").resolve() == tmp_path / "models"


def test_drafters_are_those_named_or_those_made_for_the_target(tmp_path: Path) -> None:
    assert store.drafter_folders([]) == DEFAULT.drafters
    assert store.drafter_folders([], DEFAULT.name) == DEFAULT.drafters
    assert store.drafter_folders([], str(tmp_path)) == ()
    assert store.drafter_folders([str(tmp_path)]) == (tmp_path,)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("smollm2-135-instruct", "Did you mean smollm2-135m-instruct?"),
        ("mistral", "Give a folder"),
        ("", "Give a folder"),
    ],
)
def test_an_unknown_name_gets_near_matches(name: str, hint: str) -> None:
    with pytest.raises(BadInputError) as caught:
        store.target_folder(name)
    assert repr(name) in caught.value.message
    assert hint in caught.value.hint
