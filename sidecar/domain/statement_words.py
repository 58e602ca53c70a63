"""The words that the rules on contradictions know: what excludes what, what limits a statement. English, data only."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import snowballstemmer


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTION_WORDS: Final = _words(
    "a an the this that these those we our us you your it its they their there i my he she who which is are was were "
    "be been being am do does did done has have had having will would shall should can could may might must need ought "
    "get gets got gotten so then also just too very still already any all each every both own please to of and or but "
    "as than such one's let lets always really currently actually simply itself themselves"
)
"""Say nothing that two statements could differ in; `always` is here because its opposite is a negation."""

AUXILIARIES: Final = _words(
    "is are was were be has have had do does did will would shall should can could may might must"
)

LEADS: Final = _words(
    "in on at for by with from via through over into onto per to about under against between within toward towards "
    "when if unless while during because until since whenever where whereas except without"
)
"""Words that open a phrase. They are no content; what follows them is told by which one it follows."""

SAME_LEADS: Final = {"through": "via", "over": "via", "into": "in", "onto": "on", "without": "with", "toward": "to"}

CONDITION_LEADS: Final = _words("when if unless while during because whenever where whereas except")
"""What follows is the case that a statement is about: two cases, no contradiction."""

ENVIRONMENTS: Final = _words(
    "production staging development test tests testing ci locally windows linux macos mac unix android ios debug "
    "release preview sandbox europe america asia monday tuesday wednesday thursday friday saturday sunday mondays "
    "tuesdays wednesdays thursdays fridays saturdays sundays weekend weekends mobile desktop x86 arm arm64"
)
"""Where or when a statement holds, rather than what it says."""

NEGATIONS: Final = _words("not never no cannot without none neither nor nobody nothing nowhere")
SOFT_NEGATIONS: Final = (
    r"\b(?:need not|needn't|not (?:only|just|necessarily|always|all|every|yet|both|exactly|quite|merely|usually)"
    r"|(?:do not|don't|does not|doesn't|did not|didn't) (?:have|need) to|no (?:one|need|matter|problem|later|more than"
    r"|less than|fewer than)|not (?:more|less|fewer) than|no sooner)\b"
)
HEDGES: Final = _words(
    "some many most several few often sometimes usually mostly maybe perhaps possibly probably normally typically "
    "typical generally occasionally rarely partly almost other another sampled"
)
RESTRICTIONS: Final = _words("only except unless if otherwise solely besides apart")

EPISODE_VERBS: Final = (
    "took|failed|finished|found|crashed|reached|lasted|measured|happened|occurred|saw|dropped|hit|broke|hung|passed|"
    "completed|noticed|discovered|reported|observed|ran|tried|fixed|debugged|spent|leaked|spiked|peaked"
)
EPISODE_WORDS: Final = "yesterday|today|this morning|last (?:night|week|month|sprint)|incident|outage"
"""Told of once: another time may well have had another figure."""

LABELS: Final = _words(
    "ticket issue step stage phase error code status model lot shard line chapter section pr case batch run level "
    "sprint milestone exit page row column question item build epic"
)
"""A number after one of these names a thing, it measures nothing."""

VERBS: Final = _words(
    "use live lie listen store keep save run need require expect support expire return retry contain hold sit send "
    "receive accept reject allow forbid deny log write read call pull push fetch load parse build compile link depend "
    "default start stop begin end last take wait sleep poll report sort order rank rotate sign hash encrypt serve host "
    "deploy connect talk speak show display render open close match map point resolve raise throw emit publish "
    "subscribe consume produce cache index stem cut limit cap retain delete discard drop ignore respect skip strip "
    "remove replicate autosave save collapse follow check validate rebuild refresh fail settle exit print import "
    "export survive happen own maintain approve install merge commit bump put pin set make create "
    "update get prefer avoid "
    "format name prefix target configure enable disable block lock warn notify include exclude overwrite append insert "
    "handle process schedule trigger execute invoke stay remain belong come go work flash accept relay embed link pay"
)
VERB_FORMS: Final = {
    "kept": "keep",
    "written": "write",
    "wrote": "write",
    "sent": "send",
    "built": "build",
    "held": "hold",
    "ran": "run",
    "taken": "take",
    "set": "set",
    "told": "tell",
    "made": "make",
    "thrown": "throw",
    "drawn": "draw",
    "shown": "show",
    "lies": "lie",
    "chosen": "choose",
}

SEVERAL_VALUED: Final = _words(
    "support accept include contain have handle import export depend emit publish subscribe consume provide offer know "
    "understand cover index show display log check validate allow call notify receive link avoid"
)
"""Verbs that may hold of several objects at once: `supports X` says nothing about Y."""

ATTRIBUTES: Final = _words(
    "default branch owner path folder directory language format encoding license licence region host leader entry "
    "database base primary prefix suffix extension toolchain compiler runtime framework linter formatter bus broker "
    "password username root charset locale timezone style convention toolkit backend engine provider name class "
    "remote registry theme"
)
"""Of each of these a thing has one; the one that the copula gives it."""

SINGLE_VALUED_PHRASES: Final = {
    "in": _words("live lie store keep save locate define set write sit belong configure express declare implement"),
    "at": _words("live sit locate start listen mount"),
    "on": _words("listen host base deploy"),
    "under": _words("live store license file release"),
    "with": _words("sign hash encrypt build compile compute rank format parse compress write"),
    "by": _words("own maintain parse serve elect sign approve write define set order sort"),
    "from": _words("read load serve import fetch derive take come"),
    "via": _words("send elect talk connect deploy serve relay communicate"),
    "to": _words("default belong map resolve point set deploy"),
    "": _words("call name"),
}
"""Verbs with the word before their object, of which a thing has one at a time."""

LIMIT_WORDS: Final = _words("require need must limit may can allow maximum minimum permit expect accept")

_ANTONYMS: Final = """
enabled/disabled enable/disable on/off synchronous/asynchronous synchronously/asynchronously sync/async public/private
mutable/immutable required/optional mandatory/optional compulsory/optional required/forbidden mandatory/forbidden
allow/forbid allow/deny allow/disallow allow/prohibit allow/block permit/forbid permit/deny accept/reject accept/refuse
before/after first/last ascending/descending open/closed open/close stateful/stateless parallel/sequentially
parallel/sequential parallel/serially concurrently/sequentially manual/automatic manually/automatically keep/delete
keep/discard keep/strip keep/remove keep/drop include/exclude strict/lenient blocking/non-blocking lazy/eager
lazily/eagerly encrypted/plaintext case-sensitive/case-insensitive read-only/writable read-only/read-write
single-use/reusable true/false minimum/maximum upper/lower left/right inside/outside internal/external local/remote
ignore/respect ignore/honour ignore/honor ignore/follow increase/decrease allowlist/denylist allowlist/blocklist
opt-in/opt-out online/offline fast/slow shared/isolated shared/separate append-only/editable above/below start/stop
present/absent known/unknown volatile/persistent ephemeral/persistent temporary/permanent static/dynamic
statically/dynamically start/end earliest/latest oldest/newest smallest/largest commit/revert push/pull short/long
singular/plural inclusive/exclusive idempotent/non-idempotent positive/negative prefer/avoid use/avoid always/seldom
succeed/fail deterministic/random relative/absolute signed/unsigned horizontal/vertical client-side/server-side
compile-time/run-time
"""
_EXCLUSIVE_VALUES: Final = """
postgres mysql mariadb sqlite mongodb oracle dynamodb cassandra cockroachdb duckdb postgis couchdb firestore redis
redis memcached hazelcast
kafka rabbitmq nats sqs pulsar activemq
json yaml toml xml csv ini protobuf cbor msgpack markdown html parquet avro restructuredtext asciidoc
png jpeg webp avif gif tiff
tabs spaces
npm yarn pnpm bun
pip poetry uv conda pipenv
squash rebase
python go rust java kotlin typescript javascript ruby php c c++ scala elixir swift perl haskell
rest grpc graphql soap
http https mqtt amqp websocket ftp sftp
tcp udp quic
md5 sha-1 sha1 sha-256 sha256 sha-512 sha512 blake3 blake2 blake2b
bcrypt argon2 argon2id scrypt pbkdf2
rs256 hs256 es256 eddsa
utc local cet est pst
gcc clang msvc
pytest unittest nose
jest vitest mocha
aws gcp azure
kubernetes nomad swarm
etcd consul zookeeper
jenkins circleci travis buildkite teamcity
main master trunk develop
camelcase snake_case kebab-case pascalcase
black white red green blue yellow grey gray
millivolts volts
bytes kilobytes megabytes
milliseconds seconds minutes
celsius fahrenheit kelvin
react vue svelte angular
django flask fastapi rails spring express
nginx caddy apache traefik haproxy
lf crlf
utf-8 utf-16 latin-1 ascii
mit apache-2.0 gpl bsd mpl
bm25 tf-idf
integer float decimal string boolean
imperative past-tense
maven gradle bazel
make just ninja
eslint biome
ruff flake8 pylint
single double
debug info warning error
unicast multicast broadcast
"""


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """Return the stem of a lower-case word; of a short one or one that is no plain word, the word itself."""
    base = VERB_FORMS.get(word, word)
    if not base.isalpha() or len(base) <= 2:
        return base
    # A stemmer holds the word it works on: one of its own for each call keeps threads apart.
    return str(snowballstemmer.stemmer("english").stemWord(base))


def stems(words: Iterable[str]) -> frozenset[str]:
    """Return the stems of words."""
    return frozenset(map(stem, words))


SYNONYMS: Final = {
    stem(word): stem(meaning)
    for word, meaning in (
        ("db", "database"),
        ("config", "configuration"),
        ("repo", "repository"),
        ("postgresql", "postgres"),
        ("k8s", "kubernetes"),
        ("prod", "production"),
        ("dev", "development"),
        ("auth", "authentication"),
        ("js", "javascript"),
        ("dir", "folder"),
        ("directory", "folder"),
        ("keep", "store"),
        ("save", "store"),
        ("golang", "go"),
        ("jpg", "jpeg"),
        ("yml", "yaml"),
        ("px", "pixel"),
    )
}
"""By stem."""


def key_of(word: str) -> str:
    """Return what a lower-case word is compared by."""
    root = stem(word)
    return SYNONYMS.get(root, root)


DIRECTION_KEYS: Final = frozenset(map(key_of, ("before", "after")))
ENVIRONMENT_KEYS: Final = frozenset(map(key_of, ENVIRONMENTS))
ANTONYMS: Final = frozenset(frozenset(map(key_of, pair.split("/"))) for pair in _ANTONYMS.split())
EXCLUSIVE_VALUES: Final = tuple(frozenset(map(key_of, line.split())) for line in _EXCLUSIVE_VALUES.split("\n") if line)
_OPPOSITE_PREFIXES: Final = ("un", "in", "im", "ir", "non", "non-", "dis")
_MIN_PREFIXED: Final = 4


def are_opposite(older: str, newer: str) -> bool:
    """Tell whether two keys are opposites, from the list or by a prefix such as `un-`."""
    if frozenset((older, newer)) in ANTONYMS:
        return True
    short, long = sorted((older, newer), key=len)
    return len(short) >= _MIN_PREFIXED and any(long == prefix + short for prefix in _OPPOSITE_PREFIXES)


def exclude_each_other(older: str, newer: str) -> bool:
    """Tell whether two different keys are values of which a thing has one."""
    return older != newer and any(older in group and newer in group for group in EXCLUSIVE_VALUES)
