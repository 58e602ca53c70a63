"""Takes a short statement apart into what two statements can be compared by. Pure; judges nothing.

No grammar: words in order, each with the word that opens its phrase, and whether it comes after the verb.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from sidecar.domain.announced_change import AnnouncedChange, announced_change, blank_change_words
from sidecar.domain.quantity import PATTERN, Comparator, Quantity, quantity_of
from sidecar.domain.statement_words import (
    AUXILIARIES,
    CONDITION_LEADS,
    EPISODE_VERBS,
    EPISODE_WORDS,
    FUNCTION_WORDS,
    HEDGES,
    LEADS,
    NEGATIONS,
    RESTRICTIONS,
    SAME_LEADS,
    SOFT_NEGATIONS,
    VERBS,
    key_of,
    stem,
    stems,
)

_DETERMINERS: Final = frozenset(
    ("a", "an", "the", "this", "that", "its", "our", "their", "all", "each", "every", "no", "not")
)
_FOLLOWS_VERB: Final = _DETERMINERS | LEADS | {"after", "before"}
_FOLLOWING: Final = "|".join(sorted(_FOLLOWS_VERB))
_SENTENCE_END: Final = re.compile(r"(?<=[.!?;])\s+|\n+")
_BULLET: Final = re.compile(r"^\s*(?:[-*•+]|\d+[.)])\s+")
_TOKEN: Final = re.compile(
    r"`[^`\n]+`|(?:[\w.~:-]*[/\\])+[\w./\\~-]*\w|\w+(?:\.[A-Za-z]\w*)+|\w+\(\)|[A-Za-z][\w]*(?:[-+'’][\w]+|\+\+|#)*|\w+"
)
_NAME: Final = re.compile(r"[/\\_.()`\d]|[a-z][A-Z]|^[A-Z][A-Z0-9-]+$")
_STATE_ON: Final = re.compile(
    r"on(?=\s*(?:[.,;]|$|(?:by|during|while|after|before|in|for|when|or|unless|if|at)\b))", re.IGNORECASE
)

_BEFORE: Final = (
    (
        Comparator.AT_LEAST,
        r"(?:at least|no (?:less|fewer) than|(?:more|greater|larger|longer|higher) than|over|above|>=?|minimum of)",
    ),
    (
        Comparator.AT_MOST,
        r"(?:at most|up to|no more than|(?:less|fewer|smaller|shorter|lower) than|under|below|within|<=?|maximum of)",
    ),
    (Comparator.ABOUT, r"(?:about|around|roughly|approximately|circa|nearly|almost|some|~)"),
)
_AFTER: Final = (
    (Comparator.AT_LEAST, r"(?:\+|\s*(?:or|and) (?:newer|later|more|higher|above|up|greater))"),
    (Comparator.AT_MOST, r"\s*(?:or|and) (?:less|fewer|older|earlier|below|lower)"),
)
_COMPARED_BEFORE: Final = tuple((which, re.compile(words + r"\s*$", re.IGNORECASE)) for which, words in _BEFORE)
_COMPARED_AFTER: Final = tuple((which, re.compile(words, re.IGNORECASE)) for which, words in _AFTER)

_SOFT: Final = re.compile(SOFT_NEGATIONS, re.IGNORECASE)
# `failed on Monday` tells of an occasion, `failed logins` does not.
_EPISODE: Final = re.compile(
    rf"\b(?:{EPISODE_WORDS}|(?:{EPISODE_VERBS})"
    rf"(?=\s*(?:[.,;]|$)|\s+(?:\d|(?:{_FOLLOWING})\b)))\b",
    re.IGNORECASE,
)
_NOT: Final = re.compile(r"n['’]t$", re.IGNORECASE)
_VERB_STEMS: Final = stems(VERBS)
_CLAUSE_WORDS: Final = CONDITION_LEADS | {"that", "which", "who", "whose", "what", "once"}
_PHRASE_BREAKS: Final = frozenset(",;:()")


@dataclass(frozen=True, slots=True)
class Term:
    """A word, name or figure that says something.

    Attributes:
        key: What it is compared by.
        start: Where it stands in the statement, in characters, as is `end`.
        lead: The word that opens its phrase, such as `in`; empty for a subject or a direct object.
        is_in_clause: Whether it belongs to a condition or describes another term (`when ...`, `that ...`).
        is_after_verb: Whether it belongs to what is said rather than to what it is said of.
        is_name: Whether it looks like a path, an identifier, an abbreviation or a proper name.
        is_listed: Whether a comma, `and` or `or` stands beside it.
        word: It as written, in lower case.
    """

    key: str
    start: int
    end: int
    lead: str = ""
    is_in_clause: bool = False
    is_after_verb: bool = False
    is_name: bool = False
    is_listed: bool = False
    word: str = ""
    is_verb: bool = False
    quantity: Quantity | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement, taken apart.

    Attributes:
        negations: Where the words stand that turn it into its opposite, in characters.
        is_hedged: It holds of some, or sometimes, or need not hold.
        is_restricted: It holds in one case only (`only`, `unless`).
        is_episode: It tells of one occasion.
        change: What it says to have changed; None if nothing.
    """

    text: str
    terms: tuple[Term, ...]
    negations: tuple[tuple[int, int], ...]
    is_hedged: bool
    is_restricted: bool
    is_episode: bool
    change: AnnouncedChange | None

    @property
    def keys(self) -> tuple[str, ...]:
        """The terms' keys, in order."""
        return tuple(term.key for term in self.terms)

    @property
    def verbs(self) -> frozenset[str]:
        """The keys of the words used as verbs; auxiliaries are none."""
        return frozenset(term.key for term in self.terms if term.is_verb)

    @property
    def is_imperative(self) -> bool:
        """Whether it starts with its verb: it tells someone to do something."""
        return bool(self.terms) and self.terms[0].is_verb

    @property
    def is_negated(self) -> bool:
        """Whether an odd number of negations leaves the opposite."""
        return len(self.negations) % 2 == 1


@dataclass(slots=True)
class _Reading:
    """Where reading a statement has come to."""

    lead: str = ""
    seen_verb: bool = False
    in_clause: bool = False


def split_statements(text: str) -> tuple[str, ...]:
    """Return the sentences, clauses after a semicolon and bullets of a text, without their end marks."""
    parts = (_BULLET.sub("", part).strip().rstrip(".!;").strip() for part in _SENTENCE_END.split(text))
    return tuple(part for part in parts if part)


def parse_statement(text: str) -> Statement:
    """Take one statement apart."""
    words = {word.lower() for word in re.findall(r"[\w-]+", text)}
    terms, negations = _read(text)
    return Statement(
        text=text,
        terms=terms,
        negations=negations,
        is_hedged=bool(words & HEDGES) or _SOFT.search(text) is not None,
        is_restricted=bool(words & RESTRICTIONS),
        is_episode=_EPISODE.search(text) is not None,
        change=announced_change(text),
    )


def _read(text: str) -> tuple[tuple[Term, ...], tuple[tuple[int, int], ...]]:
    """Return the terms of a statement and where its negations stand."""
    reading = _Reading()
    terms: list[Term] = []
    negations: list[tuple[int, int]] = []
    pieces = list(_pieces(blank_change_words(text)))
    for number, (start, end, quantity) in enumerate(pieces):
        raw = text[start:end]
        following = text[pieces[number + 1][0] : pieces[number + 1][1]].lower() if number + 1 < len(pieces) else ""
        between = text[pieces[number - 1][1] : start] if number else ""
        if _PHRASE_BREAKS & set(between):
            reading.lead = ""
            reading.in_clause = False
        # `timeout: 30 s` and `timeout = 30 s` say what `the timeout is 30 s` says.
        reading.seen_verb = reading.seen_verb or ":" in between or "=" in between
        if quantity is not None:
            terms.append(_placed(Term(_quantity_key(quantity), start, end, quantity=quantity), text, reading))
            continue
        word = raw.lower().replace("’", "'")
        if word in NEGATIONS or _NOT.search(word):
            if reading.in_clause or (word == "without" and not reading.seen_verb):
                # It tells which things are meant, so that without it others are.
                terms.append(_placed(Term("not", start, end, word=word), text, reading))
            else:
                negations.append((start, end))
        reading.in_clause = reading.in_clause or word in _CLAUSE_WORDS
        if _is_structure(word, text, start, following, reading):
            continue
        previous = text[pieces[number - 1][0] : pieces[number - 1][1]].lower() if number else ""
        is_verb = _is_verb(word, previous, following)
        terms.append(_placed(_word_term(raw, start, end, is_first=number == 0), text, reading))
        if is_verb:
            reading.seen_verb = reading.seen_verb or not reading.in_clause
            terms[-1] = replace(terms[-1], is_after_verb=reading.seen_verb, is_verb=True)
            reading.lead = ""
    return tuple(terms), tuple(negations)


def _is_structure(word: str, text: str, start: int, following: str, reading: _Reading) -> bool:
    """Note what a word without content says of the words around it, and tell whether it is one."""
    if word in AUXILIARIES or _NOT.search(word) or word == "cannot":
        # An auxiliary in a clause is not the statement's own, which is still to come.
        reading.seen_verb = reading.seen_verb or not reading.in_clause
        reading.lead = ""
        return True
    if word == "on" and reading.seen_verb and _STATE_ON.match(text[start:]):
        return False
    if word in LEADS:
        reading.lead = SAME_LEADS.get(word, word)
        return True
    if word in NEGATIONS or word in FUNCTION_WORDS:
        return True
    return word == "not" or (word in {"at"} and not following)


def _pieces(text: str) -> Iterator[tuple[int, int, Quantity | None]]:
    """Yield the figures and words of a text in order, with where they stand."""
    position = 0
    while position < len(text):
        if not (text[position].isalnum() or text[position] in "`/\\~_."):
            position += 1
            continue
        token = _TOKEN.match(text, position)
        figure = PATTERN.match(text, position)
        # `2fa`, `tableKeys2.ts` and `/srv/2` are names although they hold a figure.
        if figure and (token is None or figure.end() >= token.end() or not _holds_letters(token.group(0))):
            yield position, figure.end(), _compared(quantity_of(figure), text, position, figure.end())
            position = figure.end()
        elif token:
            yield position, token.end(), None
            position = token.end()
        else:
            position += 1


def _holds_letters(token: str) -> bool:
    return any(character.isalpha() for character in token)


def _compared(quantity: Quantity, text: str, start: int, end: int) -> Quantity:
    for which, pattern in _COMPARED_AFTER:
        if pattern.match(text, end):
            return replace(quantity, comparator=which)
    for which, pattern in _COMPARED_BEFORE:
        if pattern.search(text[:start]):
            return replace(quantity, comparator=which)
    return _as_version(quantity, text[:start])


def _as_version(quantity: Quantity, before: str) -> Quantity:
    """Read a plain number after a product's name as a version: `Node 18`."""
    words = before.split()
    follows_name = len(words) > 1 and before.endswith(" ") and words[-1][:1].isupper()
    if quantity.dimension == "" and (follows_name or (words and words[-1].lower() in {"version", "release"})):
        digits = before and quantity.parts[0]
        return Quantity("version", tuple(float(part) for part in str(digits).removesuffix(".0").split(".")))
    return quantity


def _quantity_key(quantity: Quantity) -> str:
    return f"#{quantity.dimension}:{','.join(f'{part:g}' for part in quantity.parts)}:{quantity.comparator}"


def _word_term(raw: str, start: int, end: int, *, is_first: bool) -> Term:
    bare = raw.strip("`")
    is_name = _NAME.search(raw) is not None or (raw[:1].isupper() and not is_first)
    return Term(
        key_of(bare.lower().replace("’", "'").removesuffix("'s").removesuffix("s'")),
        start,
        end,
        is_name=is_name,
        word=bare.lower(),
    )


def _placed(term: Term, text: str, reading: _Reading) -> Term:
    around = (text[: term.start].rstrip()[-4:], text[term.end :].lstrip()[:4])
    is_listed = (
        around[0].endswith((",", " and", " or")) or around[1].startswith((",", "and ", "or "))
    ) and term.quantity is None
    return replace(
        term,
        lead=reading.lead,
        is_in_clause=reading.in_clause,
        is_after_verb=reading.seen_verb,
        is_listed=is_listed,
    )


def _is_verb(word: str, previous: str, following: str) -> bool:
    """Tell whether a word is used as a verb, as far as its neighbours show; empty ones are the statement's ends."""
    if stem(word) not in _VERB_STEMS or word.endswith("ing"):
        return False
    # `port calls of ships`, `job logs are`, `the default on`: nouns.
    if following == "of" or following in AUXILIARIES or previous in _DETERMINERS - {"not", "that"}:
        return False
    if not previous:
        return not word.endswith(("s", "ed"))
    leads_on = following in _FOLLOWS_VERB or PATTERN.match(following) is not None
    # `sensors report`, `devices accept`: after a plural the plain form is the verb.
    return leads_on or word.endswith(("s", "ed")) or previous.endswith("s")
