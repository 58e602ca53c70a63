"""Settings: where a value comes from, what is refused, and that the documentation is true."""

from pathlib import Path

import pytest

from sidecar.config import SETTINGS, Settings, load_settings, settings_table, unknown_variables
from sidecar.errors import InvalidInputError, UntrustedPathError

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "configuration.md"


def write_file(home: Path, text: str) -> None:
    """Write the settings file."""
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(text)
    (home / "config.toml").chmod(0o600)


def test_later_sources_win(tmp_path: Path) -> None:
    """Defaults < file < environment < flags."""
    write_file(tmp_path, "default_results = 7\ncandidates = 50\nmachine_weight = 1\n")
    environment = {"SIDECAR_CANDIDATES": "60", "SIDECAR_EMBED_BATCH_SIZE": "8"}
    settings = load_settings(home=tmp_path, environment=environment, flags={"embed_batch_size": "4"})
    assert (settings.default_results, settings.candidates, settings.embed_batch_size) == (7, 60, 4)
    assert settings.query_cache_size == 1024
    assert isinstance(settings.machine_weight, float)


def test_home_is_taken_from_the_nearest_source(tmp_path: Path) -> None:
    """A given folder wins over the variable; the file is read from the one that was chosen."""
    write_file(tmp_path / "a", "candidates = 11")
    write_file(tmp_path / "b", "candidates = 22")
    environment = {"SIDECAR_HOME": str(tmp_path / "b")}
    assert load_settings(environment=environment).candidates == 22
    assert load_settings(home=tmp_path / "a", environment=environment).candidates == 11


def test_folder_need_not_exist(tmp_path: Path) -> None:
    """Reading settings makes nothing."""
    settings = load_settings(home=tmp_path / "none", environment={})
    assert settings == Settings(home=tmp_path / "none")
    assert not settings.home.exists()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("SIDECAR_EMBED_BATCH_SIZE", "many"),
        ("SIDECAR_EMBED_BATCH_SIZE", "0"),
        ("SIDECAR_EMBED_BATCH_SIZE", "1.5"),
        ("SIDECAR_EMBED_BATCH_SIZE", ""),
        ("SIDECAR_RECALL_FLOOR", "nan"),
        ("SIDECAR_RECALL_FLOOR", "1.1"),
        ("SIDECAR_IDLE_EXIT_S", "inf"),
        ("SIDECAR_IDLE_EXIT_S", "9" * 5000),
        ("SIDECAR_WATCHER", "maybe"),
        ("SIDECAR_TRANSPORT", "pigeon"),
        ("SIDECAR_LOG_LEVEL", ""),
    ],
)
def test_bad_value_names_setting_value_and_what_is_expected(tmp_path: Path, variable: str, value: str) -> None:
    """Whoever mistyped it must see at once where and how."""
    with pytest.raises(InvalidInputError) as refused:
        load_settings(home=tmp_path, environment={variable: value})
    setting = next(each for each in SETTINGS if each.variable == variable)
    assert setting.name in refused.value.message
    assert variable in refused.value.message
    assert setting.expected in refused.value.message
    assert value[:20] in refused.value.message


@pytest.mark.parametrize(
    "text", ["candidates = 'x'", "candidates = true", "watcher = 1", "[candidates]\na = 1", "candidates = ", "\udcff"]
)
def test_bad_file_is_refused(tmp_path: Path, text: str) -> None:
    """A file is refused as a whole; no half of it is used."""
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "config.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    (tmp_path / "config.toml").chmod(0o600)
    with pytest.raises(InvalidInputError, match=r"config\.toml"):
        load_settings(home=tmp_path, environment={})


def test_misspelt_name_gets_a_hint(tmp_path: Path) -> None:
    """A setting that is silently ignored is worse than none."""
    write_file(tmp_path, "canddates = 5")
    with pytest.raises(InvalidInputError, match="did you mean `candidates`"):
        load_settings(home=tmp_path, environment={})
    assert unknown_variables({"SIDECAR_CANDDATES": "5", "SIDECAR_CANDIDATES": "5", "SIDECAR_HOME": "x"}) == (
        "SIDECAR_CANDDATES",
    )


def test_file_that_others_can_change_is_refused(tmp_path: Path) -> None:
    """It decides which model is loaded and which folders are read."""
    write_file(tmp_path, "candidates = 5")
    (tmp_path / "config.toml").chmod(0o666)
    with pytest.raises(UntrustedPathError):
        load_settings(home=tmp_path, environment={})


@pytest.mark.parametrize("text", ["on", "TRUE", "1", "yes"])
def test_switches_take_the_usual_words(tmp_path: Path, text: str) -> None:
    """People write them in every way."""
    assert load_settings(home=tmp_path, environment={"SIDECAR_INDEX_SNAPSHOT": text}).index_snapshot is True


def test_defaults_are_allowed_values() -> None:
    """A default that its own range refuses could not be written down."""
    for setting in SETTINGS:
        assert setting.accept(setting.default, source="default") == setting.default
        assert setting.description.endswith(".")


def test_documentation_has_the_table() -> None:
    """`python -m sidecar.config` prints the table; put it into docs/configuration.md."""
    assert settings_table() in DOCUMENTATION.read_text("utf-8")
