"""How rare a word is in general, told by its place in the default model's vocabulary, which is sorted by frequency."""

import json
import math
from collections.abc import Mapping
from typing import Final

import snowballstemmer

from sidecar.adapters.embedders.minilm_onnx import read_tokenizer_table

_FIRST_WORD: Final = 1_995
"""Ids below are special tokens and single characters."""

_VOCABULARY_WORDS: Final = 28_600
_STEEPNESS: Final = 4.0
"""Makes the few hundred commonest words tell nearly nothing. 2 to 6 gave the same figures on the development data."""


class WordRarity:
    """Ranks words. A word that the vocabulary does not have whole is as rare as can be."""

    def __init__(self) -> None:
        """Read the vocabulary; takes about half a second.

        Raises:
            EmbedderUnavailableError: See `read_tokenizer_table`.
        """
        self._ranks = _ranks(json.loads(read_tokenizer_table())["model"]["vocab"])

    def __call__(self, word: str) -> float:
        """Return the rarity of a lower-case word or stem, 0 to 1."""
        rank = self._ranks.get(word)
        if rank is None:
            return 1.0
        return float((math.log(rank) / math.log(_VOCABULARY_WORDS)) ** _STEEPNESS)


def _ranks(vocabulary: Mapping[str, int]) -> dict[str, int]:
    """Return the best rank of each word and stem, from 1."""
    stemmer = snowballstemmer.stemmer("english")
    ranks: dict[str, int] = {}
    for word, number in sorted(vocabulary.items(), key=lambda item: item[1]):
        if word.isalpha():
            rank = max(number - _FIRST_WORD, 1)
            ranks.setdefault(word, rank)
            ranks.setdefault(str(stemmer.stemWord(word)), rank)
    return ranks
