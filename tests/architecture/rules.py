"""Rules on code that no linter in use has. Each takes a syntax tree and yields (line, what is wrong). No tests."""

import ast
from collections.abc import Iterator
from typing import Final

Finding = tuple[int, str]

MAX_FUNCTION_LINES: Final = 60
MAX_POSITIONAL_PARAMETERS: Final = 5

_BROAD: Final = frozenset({"Exception", "BaseException"})
_PICKLERS: Final = frozenset({"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"})
_EVALUATORS: Final = frozenset({"eval", "exec"})
# Taken from multiprocessing itself, its classes use the default start method: fork on Linux before Python 3.14.
_FORKERS: Final = frozenset(
    {"os.fork", "os.forkpty", "pty.fork"} | {f"multiprocessing.{name}" for name in ("Process", "Pool", "Manager")}
)
_START_METHODS: Final = frozenset({"multiprocessing.get_context", "multiprocessing.set_start_method"})
_NAME_ENDINGS: Final = ("Manager", "Helper", "Helpers", "Utils", "Util", "Impl")
_FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def long_functions(tree: ast.Module) -> Iterator[Finding]:
    """Find functions that are longer than can be read at a glance; docstring and signature count."""
    for node in ast.walk(tree):
        if isinstance(node, _FunctionNode):
            line_count = (node.end_lineno or node.lineno) - node.lineno + 1
            if line_count > MAX_FUNCTION_LINES:
                yield node.lineno, f"{node.name} has {line_count} lines, over {MAX_FUNCTION_LINES}: split it"


def many_positional_parameters(tree: ast.Module) -> Iterator[Finding]:
    """Find functions whose calls cannot be read because too many arguments go by position."""
    for node in ast.walk(tree):
        if isinstance(node, _FunctionNode):
            names = [parameter.arg for parameter in (*node.args.posonlyargs, *node.args.args)]
            count = len([name for name in names if name not in {"self", "cls"}])
            # Typer reads a command's options from its parameters; nobody calls it by position.
            if count > MAX_POSITIONAL_PARAMETERS and not node.decorator_list:
                yield node.lineno, f"{node.name} takes {count} arguments by position: put `*` before some"


def vague_class_names(tree: ast.Module) -> Iterator[Finding]:
    """Find classes named for nothing in particular."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name.endswith(_NAME_ENDINGS):
            yield node.lineno, f"{node.name}: name the subject or the job"


def swallowed_errors(tree: ast.Module) -> Iterator[Finding]:
    """Find handlers of everything that do nothing, and `suppress` of everything."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and _is_broad(node.type) and all(map(_does_nothing, node.body)):
            yield node.lineno, "swallows every error: name the class, or count and log it"
        if isinstance(node, ast.Call) and _last_name(node) == "suppress" and any(map(_is_broad, node.args)):
            yield node.lineno, "suppresses every error: name the class"


def forks(tree: ast.Module) -> Iterator[Finding]:
    """Find what forks: gRPC, FAISS and our threads do not survive it."""
    for node in ast.walk(tree):
        names: set[str] = set()
        if isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Attribute):
            names = {_dotted(node)}
        elif isinstance(node, ast.Call) and _dotted(node.func) in _START_METHODS and not _says_spawn(node):
            yield node.lineno, "only the start method 'spawn' is safe here"
        elif isinstance(node, ast.keyword) and node.arg == "preexec_fn":
            yield node.value.lineno, "preexec_fn runs between fork and exec, where threads may hold locks"
        for name in sorted(names & _FORKERS):
            yield getattr(node, "lineno", 0), f"{name} forks: use subprocess, or get_context('spawn')"


def runs_data_as_code(tree: ast.Module) -> Iterator[Finding]:
    """Find ways by which a file, an index or a model could run code of its author."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            roots = {alias.name.partition(".")[0] for alias in node.names}
            for name in sorted(roots & _PICKLERS):
                yield node.lineno, f"{name} runs code that is in the data: use JSON or a struct"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in _PICKLERS:
            yield node.lineno, f"{node.module} runs code that is in the data: use JSON or a struct"
        elif isinstance(node, ast.Call):
            yield from _dangerous_call(node)


def prints(tree: ast.Module) -> Iterator[Finding]:
    """Find prints: where stdout is a protocol's wire, one of them breaks the client."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _dotted(node.func) == "print":
            yield node.lineno, "prints to stdout, which is the wire: log instead"


def tests_without_sentence(tree: ast.Module) -> Iterator[Finding]:
    """Find tests that do not say in a sentence what must hold."""
    for node in ast.walk(tree):
        if isinstance(node, _FunctionNode) and node.name.startswith("test_") and not ast.get_docstring(node):
            yield node.lineno, f"{node.name} has no sentence saying what must hold and why"


def asserts_something(tree: ast.Module) -> bool:
    """Tell whether a test module checks anything: an assert, an expected error, or a shared `assert_...` helper."""
    return any(
        isinstance(node, ast.Assert)
        or (
            isinstance(node, ast.Call)
            and _dotted(node.func).rpartition(".")[2].startswith(("assert_", "raises", "warns"))
        )
        for node in ast.walk(tree)
    )


def _dangerous_call(node: ast.Call) -> Iterator[Finding]:
    """Judge one call by what it calls and its keywords."""
    name = _dotted(node.func)
    keywords = {item.arg: item.value for item in node.keywords}
    if name in _EVALUATORS:
        yield node.lineno, f"{name} runs a text as code"
    if name in {"yaml.load", "yaml.unsafe_load", "yaml.full_load"}:
        yield node.lineno, f"{name} builds objects that the text names: use yaml.safe_load"
    for risky in ("trust_remote_code", "allow_pickle"):
        value = keywords.get(risky)
        if value is not None and not (isinstance(value, ast.Constant) and value.value is False):
            yield node.lineno, f"{risky} runs code that comes with the data: only a literal False is allowed"


def _says_spawn(node: ast.Call) -> bool:
    """Tell whether a choice of the start method is the safe one."""
    return any(isinstance(argument, ast.Constant) and argument.value == "spawn" for argument in node.args)


def _is_broad(node: ast.expr | None) -> bool:
    """Tell whether an `except` or `suppress` takes in every error."""
    if isinstance(node, ast.Tuple):
        return any(_is_broad(element) for element in node.elts)
    return node is None or _dotted(node) in _BROAD


def _does_nothing(node: ast.stmt) -> bool:
    """Tell whether a statement leaves no trace of the error."""
    return isinstance(node, ast.Pass | ast.Continue) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _last_name(node: ast.Call) -> str:
    """Return the `c` of a call `a.b.c()`."""
    return _dotted(node.func).rpartition(".")[2]


def _dotted(node: ast.expr) -> str:
    """Return `a.b.c` for such an expression, and nothing for any other."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        parent = _dotted(node.value)
        return f"{parent}.{node.attr}" if parent else ""
    return ""
