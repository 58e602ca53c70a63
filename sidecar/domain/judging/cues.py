"""Words by which a transcript tells what became of something: it failed, was wrong, was set aside. Pure.

English first, with the commonest of German, Spanish and Chinese; names and figures carry the other languages.
"""

import re
from typing import Final

from sidecar.domain.judging.terms import figures_of
from sidecar.domain.words import tokenise

TROUBLE: Final = re.compile(
    r"\b(?:errors?|failed|failure|fails|fatal|not found|no such|unknown|invalid|unrecognized|unsupported|refused"
    r"|does not exist|doesn't exist|missing|denied|exception|traceback|undefined|cannot|can't|couldn't|unexpected"
    r"|not allowed|deprecated|retired|timed out|conflict)\b"
    r"|(?<![\d.,])[45]\d\d (?:[A-Z]|$)|HTTP[/\d. ]{0,8} [45]\d\d|exit code [1-9]|[✗✘]",
    re.IGNORECASE,
)
"""In a tool's output: something went wrong."""

CORRECTION: Final = re.compile(
    r"\b(?:revert\w*|undo\w*|undid|roll(?:ing|ed)? (?:\w+ )?back|rolled"
    r"|(?:tak|tok)(?:e|ing|en|es) (?:it|that|this|the \w+(?: \w+)?) (?:out|back|off)|put(?:ting)? \w+ back"
    r"|set(?:ting)? it back|restor\w+|remov(?:e|ing) (?:it|that|the)|dropping (?:it|that)|wrong|mistake\w*|misread"
    r"|correcting|gone|renamed|no longer|any ?more|outdated|obsolete|worse|(?:did|do|does)(?:n't| not) (?:help|work)"
    r"|has no effect|unnecessary|not needed|should(?:n't| not) have|back to|without it"
    r"|zurück\w*|rückgängig|falsch|veraltet|equivocad\w+)\b|[错撤]|回退",
    re.IGNORECASE,
)
"""In the agent's words: what was done is taken back, or was a mistake."""

DISMISSAL: Final = re.compile(
    r"\b(?:outdated|out of date|no longer|any ?more|obsolete|stale|by now|(?:has|have|is|are) (?:gone|changed)"
    r"|not (?:it|the cause|the reason|that)|is(?:n't| not) (?:it|that|the)|ruled out|(?:is|are|was) out|set aside"
    r"|excluded?|does(?:n't| not) (?:apply|hold|matter)|not apply|harmless|(?:is|are) fine|already|far (?:below|above)"
    r"|(?:was|is) old|notes? (?:is|are|was) (?:old|wrong)|despite|in spite|although|veraltet|nicht mehr|ya no)\b"
    r"|不再|过时",
    re.IGNORECASE,
)
"""In the agent's words: something is considered and does not hold here."""

REASON: Final = re.compile(
    r"\b(?:because|since|so that|so|therefore|hence|thus|reason|rather|instead|not|must(?:n't| not)?|never"
    r"|need(?:s|ed)?|has to|have to|had to|otherwise|or else|as|that's why|would|weil|damit|deshalb|denn|muss|also)\b"
    r"|[因为所以]",
    re.IGNORECASE,
)
"""In the agent's words: one thing is said to follow from another."""

PLAN: Final = re.compile(r"^\W*plan\b|\bplan(?:ned)?:|^\W*\d[.)]", re.IGNORECASE)
"""An announcement; the sentence itself is no deed."""

REVERT_COMMAND: Final = re.compile(r"git (?:checkout|restore|revert|reset|stash)\b|\bundo\b|rollback|rollout undo")

_NEGATION: Final = re.compile(
    r"\b(?:do not|don't|does not|doesn't|never|not|no|without|avoid|must not|cannot|can't|forbidden|instead of"
    r"|rather than|nicht|kein\w*|nie)\b",
    re.IGNORECASE,
)
_CLAUSE_END: Final = re.compile(r"[.;,:()](?=\s|$)|\s\(|\b(?:but|because|since|and)\b")
_WRITTEN: Final = re.compile(r"[^\s`]+")
_QUOTED: Final = re.compile(r"`([^`]+)`")
_NEGATED_WORDS: Final = 7


def negated_keys(content: str) -> frozenset[str]:
    """Return the keys of terms that a memory warns of or denies (`never X`, `not 600`), and names nowhere else."""
    negated: set[str] = set()
    affirmed: set[str] = set()
    for clause in _CLAUSE_END.split(content):
        found = _NEGATION.search(clause)
        if found is None:
            affirmed |= _keys(clause)
            continue
        affirmed |= _keys(clause[: found.start()])
        denied = " ".join(clause[found.end() :].split()[:_NEGATED_WORDS])
        negated |= _keys(denied) | {denied.lower().strip(" `")}
    return frozenset(negated - affirmed)


def _keys(text: str) -> set[str]:
    written = {word.lower().strip("`()") for word in _WRITTEN.findall(text)}
    return written | set(tokenise(text)) | set(figures_of(text)) | {name.lower() for name in _QUOTED.findall(text)}
