"""The default judge: signals from words, names, figures and meaning, weighed by fitted numbers. No network, no LLM."""

import asyncio
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np

from sidecar.adapters.judges.weights_file import read_model
from sidecar.adapters.judges.word_rarity import WordRarity
from sidecar.domain.judgement import JudgeCase, Verdict
from sidecar.domain.judging.meaning import SETTING_ASIDE, TAKING_BACK, TWIN_COSINE, Meaning
from sidecar.domain.judging.model import JudgeModel
from sidecar.domain.judging.reading import Reading, bits
from sidecar.domain.judging.signals import signals_of
from sidecar.domain.judging.terms import Rarity, terms_of
from sidecar.domain.statement import split_statements
from sidecar.errors import EmbedderUnavailableError, EmbeddingFailedError, JudgeUnavailableError
from sidecar.ports import Embedder, Embedding

_MAX_EMBEDDED: Final = 40
"""Of one transcript: the utterances that mention most of the memories. Embedding is nearly all the time it takes."""

_MAX_UTTERANCE_CHARACTERS: Final = 240
_MAX_CONTENT_CHARACTERS: Final = 1_000
_MAX_STATEMENTS: Final = 6
_MAX_OTHERS: Final = 30
_MAX_KEPT: Final = 2_000


@dataclass(frozen=True, slots=True)
class _Heard:
    """Embeddings of a transcript: a row for each of `places`, of `count` utterances in all."""

    count: int
    places: Sequence[int]
    rows: Embedding

    def nearest(self, to: Embedding) -> tuple[float, ...]:
        """Return each utterance's cosine with the nearest of some rows, 0 for what was not embedded."""
        cosines = [0.0] * self.count
        if self.places:
            for place, cosine in zip(self.places, (self.rows @ to.T).max(axis=1), strict=True):
                cosines[place] = float(cosine)
        return tuple(cosines)


class LocalJudge:
    """Judges in this process; see `Judge`. The same cases get the same verdicts, in whatever order."""

    def __init__(self, embedder: Embedder, *, model: JudgeModel | None = None, rarity: Rarity | None = None) -> None:
        """Take what it needs; nothing heavy happens before the first case.

        Args:
            embedder: MUST be the default model, all-MiniLM-L6-v2: the weights were fitted on its cosines.
            model: None for the weights that ship with the package.
            rarity: None for the default model's vocabulary.

        Raises:
            JudgeUnavailableError: If the weights cannot be read.
        """
        self._embedder = embedder
        self._model = model or read_model()
        self._rarity = rarity
        self._loading = threading.Lock()
        self._kept: dict[str, Embedding] = {}
        self._keeping = threading.Lock()

    @property
    def name(self) -> str:
        """See `Judge.name`."""
        return f"local-{self._model.version}"

    async def judge(self, cases: Sequence[JudgeCase]) -> list[Verdict | None]:
        """See `Judge.judge`; there is a verdict on every case."""
        return await asyncio.to_thread(self.judge_now, tuple(cases))

    def judge_now(self, cases: Sequence[JudgeCase]) -> list[Verdict | None]:
        """Return the verdicts, in this thread."""
        verdicts: list[Verdict | None] = [None] * len(cases)
        for position, signals in self.signals(cases):
            verdicts[position] = self._model.verdict(cases[position].memory_id, signals)
        return verdicts

    def signals(self, cases: Sequence[JudgeCase]) -> Iterator[tuple[int, dict[str, float]]]:
        """Yield each case's position and signals, cases of one transcript together.

        Raises:
            JudgeUnavailableError: If the embedder fails.
        """
        for positions in _by_transcript(cases):
            together = [cases[position] for position in positions]
            reading = Reading(together[0])
            meanings = self._meanings(together, reading)
            for position, case, meaning in zip(positions, together, meanings, strict=True):
                yield position, signals_of(case, reading, meaning, self._rarity_now())

    def _rarity_now(self) -> Rarity:
        with self._loading:
            if self._rarity is None:
                self._rarity = WordRarity()
            return self._rarity

    def _meanings(self, cases: Sequence[JudgeCase], reading: Reading) -> list[Meaning]:
        """Return how near each memory is to the utterances, all of them embedded in one call."""
        places = _telling(cases[0], reading)
        spoken = [reading.utterances[place].text[:_MAX_UTTERANCE_CHARACTERS] for place in places]
        own = [_statements(case.content) for case in cases]
        others = [[_gist(other) for other in case.others[:_MAX_OTHERS]] for case in cases]
        ways = (TAKING_BACK, SETTING_ASIDE)
        vectors = self._embed(spoken) | self._embed_kept(chain.from_iterable((*own, *others, *ways)))

        def stack(texts: Sequence[str]) -> Embedding:
            return np.stack([vectors[text] for text in texts]) if texts else np.zeros((0, 1), np.float32)

        heard = _Heard(len(reading), places, stack(spoken))
        sounds = [heard.nearest(stack(way)) for way in ways]
        return [
            _meaning(heard, sounds, own=stack(mine), others=stack(beside))
            for mine, beside in zip(own, others, strict=True)
        ]

    def _embed_kept(self, wanted: Iterable[str]) -> dict[str, Embedding]:
        """Return embeddings of texts that come again: memories are shown in many sessions."""
        texts = dict.fromkeys(wanted)
        with self._keeping:
            kept = {text: self._kept[text] for text in texts if text in self._kept}
        fresh = self._embed([text for text in texts if text not in kept])
        with self._keeping:
            if len(self._kept) > _MAX_KEPT:
                self._kept.clear()
            self._kept.update(fresh)
        return kept | fresh

    def _embed(self, wanted: Sequence[str]) -> dict[str, Embedding]:
        texts = list(dict.fromkeys(wanted))
        try:
            rows = self._embedder.embed_documents(texts)
        except (EmbedderUnavailableError, EmbeddingFailedError) as error:
            raise JudgeUnavailableError(self.name, error.message) from error
        return {text: windows[0] for text, windows in zip(texts, rows, strict=True)}


def _by_transcript(cases: Sequence[JudgeCase]) -> list[list[int]]:
    """Return the positions of cases with one and the same transcript, which is then read once."""
    groups: dict[tuple[object, object], list[int]] = {}
    for position, case in enumerate(cases):
        groups.setdefault((case.before, case.after), []).append(position)
    return list(groups.values())


def _telling(case: JudgeCase, reading: Reading) -> list[int]:
    """Return which utterances to embed, in order: those with most terms of the memories that were shown.

    All cases of a session were shown the same memories, one of them the case's own, so that they have one choice.
    """
    speakers = reading.speakers
    places = list(bits(speakers.said | speakers.done | speakers.looked | speakers.asked))
    if len(places) > _MAX_EMBEDDED:
        shown = [case.content, *case.others[:_MAX_OTHERS]]
        mentions = [reading.mentions(term) for content in shown for term in terms_of(content)]
        counts = {place: sum(mask >> place & 1 for mask in mentions) for place in places}
        places = sorted(sorted(places, key=lambda place: (-counts[place], place))[:_MAX_EMBEDDED])
    return places


def _statements(content: str) -> list[str]:
    """Return a memory and its sentences: either may be what an utterance is near to."""
    gist = _gist(content)
    return [gist, *split_statements(gist)[:_MAX_STATEMENTS]]


def _gist(content: str) -> str:
    return content[:_MAX_CONTENT_CHARACTERS]


def _meaning(heard: _Heard, sounds: Sequence[tuple[float, ...]], *, own: Embedding, others: Embedding) -> Meaning:
    """Return the cosines; see `Meaning`. `own` has the memory's rows, the whole of it first."""
    near = heard.nearest(own)
    rivals = heard.nearest(others) if len(others) else near
    taking_back, setting_aside = sounds
    return Meaning(
        own=near,
        lead=tuple(mine - other for mine, other in zip(near, rivals, strict=True)),
        taking_back=taking_back,
        setting_aside=setting_aside,
        twin=_twin(own[0], others),
    )


def _twin(whole: Embedding, others: Embedding) -> int:
    """Return the place of the other memory that is about the same thing, -1 if there is none."""
    if not len(others):
        return -1
    cosines = others @ whole
    nearest = int(cosines.argmax())
    return nearest if cosines[nearest] > TWIN_COSINE else -1
