"""The code keeps to the rules of tests/architecture/rules.py, and each rule finds what it is for."""

import ast
from collections.abc import Callable, Iterator

import pytest

from tests.architecture import rules
from tests.architecture.sources import PRODUCT, modules

Rule = Callable[[ast.Module], Iterator[rules.Finding]]

PRODUCT_RULES: tuple[Rule, ...] = (
    rules.long_functions,
    rules.many_positional_parameters,
    rules.vague_class_names,
    rules.swallowed_errors,
    rules.forks,
    rules.runs_data_as_code,
)

BAD_CODE: tuple[tuple[Rule, str], ...] = (
    (rules.long_functions, "def f() -> None:\n" + "    x = 1\n" * 60),
    (rules.many_positional_parameters, "def f(a, b, c, d, e, g): ..."),
    (rules.vague_class_names, "class MemoryManager: ..."),
    (rules.swallowed_errors, "try:\n    f()\nexcept Exception:\n    pass"),
    (rules.swallowed_errors, "try:\n    f()\nexcept:\n    ..."),
    (
        rules.swallowed_errors,
        "for x in y:\n    try:\n        f()\n    except (ValueError, Exception):\n        continue",
    ),
    (rules.swallowed_errors, "with contextlib.suppress(Exception):\n    f()"),
    (rules.forks, "os.fork()"),
    (rules.forks, "from os import fork"),
    (rules.forks, "multiprocessing.Process(target=f)"),
    (rules.forks, "from multiprocessing import Pool"),
    (rules.forks, "multiprocessing.get_context('fork')"),
    (rules.forks, "multiprocessing.get_context()"),
    (rules.forks, "subprocess.Popen(command, preexec_fn=f)"),
    (rules.runs_data_as_code, "import pickle"),
    (rules.runs_data_as_code, "from joblib import load"),
    (rules.runs_data_as_code, "eval(text)"),
    (rules.runs_data_as_code, "yaml.load(text)"),
    (rules.runs_data_as_code, "AutoModel.from_pretrained(name, trust_remote_code=True)"),
    (rules.runs_data_as_code, "np.load(path, allow_pickle=flag)"),
    (rules.prints, "print('ready')"),
    (rules.tests_without_sentence, "def test_something():\n    assert True"),
)


@pytest.mark.parametrize("rule", PRODUCT_RULES, ids=lambda rule: rule.__name__)
def test_product_code_keeps_the_rule(rule: Rule) -> None:
    """A rule that is not enforced is forgotten."""
    found = [f"{module.path}:{line}: {what}" for module in modules(*PRODUCT) for line, what in rule(module.tree)]
    assert not found, "\n".join(found)


def test_plugins_never_print() -> None:
    """The stdout of a bridge or hook is its protocol's wire; a stray line breaks the client."""
    found = [
        f"{module.path}:{line}: {what}"
        for module in modules("client_plugins")
        for line, what in rules.prints(module.tree)
    ]
    assert not found, "\n".join(found)


def test_every_test_says_what_must_hold() -> None:
    """When a test fails, its sentence tells whether the test or the code is wrong."""
    found = [
        f"{module.path}:{line}: {what}"
        for module in modules("tests")
        for line, what in rules.tests_without_sentence(module.tree)
    ]
    assert not found, "\n".join(found)


def test_every_test_file_asserts_something() -> None:
    """A file of tests that only run code looks like safety and is none."""
    idle = [
        str(module.path)
        for module in modules("tests")
        if module.path.name.startswith("test_") and not rules.asserts_something(module.tree)
    ]
    assert not idle, f"no assertion in {', '.join(idle)}"


@pytest.mark.parametrize(("rule", "code"), BAD_CODE, ids=lambda value: getattr(value, "__name__", "code"))
def test_rule_finds_what_it_is_for(rule: Rule, code: str) -> None:
    """A rule that finds nothing anywhere would go unnoticed."""
    assert list(rule(ast.parse(code)))


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        (rules.swallowed_errors, "try:\n    f()\nexcept FileNotFoundError:\n    pass"),
        (rules.swallowed_errors, "try:\n    f()\nexcept Exception:\n    log.exception('lost')"),
        (rules.forks, "multiprocessing.get_context('spawn')"),
        (rules.runs_data_as_code, "SentenceTransformer(path, trust_remote_code=False)"),
        (rules.runs_data_as_code, "re.compile(text); model.eval()"),
        (rules.many_positional_parameters, "def f(self, a, b, c, d, e, *, g, h): ..."),
    ],
    ids=lambda value: getattr(value, "__name__", "code"),
)
def test_rule_lets_good_code_pass(rule: Rule, code: str) -> None:
    """A rule with false alarms gets switched off."""
    assert not list(rule(ast.parse(code)))
