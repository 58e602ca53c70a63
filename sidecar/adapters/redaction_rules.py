"""Our own patterns for secrets: what the detector library misses, and formats that must never depend on it.

Every pattern takes linear time: it starts with a literal or right after a boundary, its repeats cannot overlap, and
what it looks ahead over is bounded. A rule is tried only on texts that hold one of its hints.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from sidecar.domain.ids import MEMORY_ID

PLACEHOLDER_START: Final = "[redacted:"

_MIN_ENTROPY_BITS: Final = 3.0
_MIN_TOKEN_LENGTH: Final = 16
_MIN_PASSWORD_LENGTH: Final = 6
_MIN_PLAIN_PASSWORD_LENGTH: Final = 12


@dataclass(frozen=True, slots=True)
class SecretRule:
    """A kind of secret.

    Attributes:
        name: Stands in the text in place of the secret.
        hints: One of these lower-case literals is in every text it can match.
        pattern: Its group `secret` is what is taken out.
        accepts: Decides on a match where the pattern alone is not enough.
    """

    name: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    accepts: Callable[[re.Match[str]], bool] | None = None

    def spans(self, text: str, lowered: str) -> Iterator[tuple[int, int]]:
        """Yield where in the text the secrets lie; `lowered` is the same text in lower case."""
        if not any(hint in lowered for hint in self.hints):
            return
        for match in self.pattern.finditer(text):
            if self.accepts is None or self.accepts(match):
                yield match.span("secret")


def entropy_bits(text: str) -> float:
    """Return the Shannon entropy of a text in bits for each character."""
    total = len(text)
    return -sum(count / total * math.log2(count / total) for count in Counter(text).values()) if total else 0.0


def looks_random(value: str) -> bool:
    """Tell whether a value that something calls a token is one, rather than a name, a path, a call or a template."""
    return (
        len(value) >= _MIN_TOKEN_LENGTH
        and _has_letter_and_digit(value)
        and entropy_bits(value) >= _MIN_ENTROPY_BITS
        and not is_reference(value)
    )


def looks_like_password(value: str, *, is_quoted: bool) -> bool:
    """Tell whether a value that something calls a password is one, rather than a word, a type or a reference."""
    if len(value) < _MIN_PASSWORD_LENGTH or _stands_for_a_secret(value):
        return False
    if _has_letter_and_digit(value):
        return is_quoted or "_" not in value
    if any(character in "!@#$%^&*?+~" for character in value) and not value.endswith(("?", "!", "*")):
        return True
    # Words only: in prose it is prose, as a literal in code it is somebody's pass phrase.
    return is_quoted and len(value) >= _MIN_PLAIN_PASSWORD_LENGTH and " " not in value and "_" not in value


_REFERENCE: Final = re.compile(
    r"""
      \$ | <[^>]*>?$ | \{ | %[({sd] | \[ | @              # a variable, a template, a list, a decorator
    | (?:~|\.{1,2})?/(?!/)[\w./@-]*$                      # a path
    | [A-Za-z_][\w-]*(?:/[\w.-]+)+\.\w{1,6}$              # a relative path to a file
    | [A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$                    # attribute access
    | [A-Za-z_][\w.]*[(\[]                                # a call or a subscript
    | \d{4}-\d{2}-\d{2}                                   # a date
    | https?://                                           # an address; what is secret in one has rules of its own
    | ([*xX.•])\1+$                                       # blanked out already
    """,
    re.VERBOSE,
)
_NAME: Final = re.compile(
    r"""
      [a-z]+(?:[_-][a-z]+)*[_-]?\d{0,2}$      # words in snake or kebab case
    | [A-Z]+(?:_[A-Z]+)*_?\d{0,2}$            # a constant's name
    | [A-Z]?[a-z]+(?:[A-Z][a-z]+)*\d?$        # words in camel case
    """,
    re.VERBOSE,
)
_HAS_PLACEHOLDER: Final = re.compile(r"redacted:|your[_-]|example|placeholder|changeme|xxxx|\.\.\.", re.IGNORECASE)


def is_reference(value: str) -> bool:
    """Tell whether a value names where a secret is, or stands for one, rather than being it."""
    return _NAME.match(value) is not None or _stands_for_a_secret(value)


def _stands_for_a_secret(value: str) -> bool:
    return (
        _REFERENCE.match(value) is not None
        or _HAS_PLACEHOLDER.search(value) is not None
        or MEMORY_ID.search(value) is not None
    )


def _has_letter_and_digit(value: str) -> bool:
    return any(c.isalpha() for c in value) and any(c.isdigit() for c in value)


def _token(name: str, hints: str, body: str, *, must_look_random: bool = False) -> SecretRule:
    """Make a rule for tokens with a known prefix that stand alone, not within a longer word."""
    pattern = re.compile(rf"(?<![A-Za-z0-9_-])(?P<secret>{body})(?![A-Za-z0-9])")
    accepts = (lambda match: looks_random(match["secret"])) if must_look_random else None
    return SecretRule(name, tuple(hint.lower() for hint in hints.split()), pattern, accepts)


def _accepts_password(match: re.Match[str]) -> bool:
    return looks_like_password(match["secret"], is_quoted=bool(match["quote"]))


_ASSIGNED: Final = r"""(?![A-Za-z])["'`]?[ \t]{0,4}(?:=>|:=|==|=|:)[ \t]{0,4}\\?(?P<quote>["'`]?)"""
_VALUE: Final = r"""(?P<secret>(?<=["'`])[^"'`\s\\]{4,256}+|(?<!["'`])[^"'`\s,;)}\]]{4,256}+)"""

_LOGIN_WORDS: Final = r"pass(?:word|wd|phrase)|pwd|kennwort"
_CREDENTIAL_WORDS: Final = (
    r"secret(?:[_-]?access)?(?:[_-]?key)?|token|api[_-]?key|apikey|access[_-]?key|auth[_-]?key|account[_-]?key"
    r"|private[_-]?key|signing[_-]?key|encryption[_-]?key|client[_-]?secret|credentials?|_auth"
)

_PREFIXED: Final = (
    _token("anthropic-api-key", "sk-ant-", r"sk-ant-[\w-]{16,300}+"),
    _token("openai-api-key", "sk-proj- sk-svcacct- sk-admin- sk-none-",
           r"sk-(?:proj|svcacct|admin|None)-[\w-]{16,300}+"),
    _token("openai-api-key", "sk-", r"sk-[A-Za-z0-9_-]{20,300}+", must_look_random=True),
    _token("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{30,255}+"),
    _token("github-token", "github_pat_", r"github_pat_\w{22,255}+"),
    _token("gitlab-token", "glpat- gldt- glrt- glcbt- glptt- glft- glimt- gloas- glsoat- glagent-",
           r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|oas|soat|agent)-[\w.-]{20,255}+"),
    _token("slack-token", "xoxa- xoxb- xoxc- xoxd- xoxe xoxo- xoxp- xoxr- xoxs-",
           r"xox(?:[abcdoprs]|e(?:\.xox[bp])?)-[A-Za-z0-9%-]{10,255}+"),
    _token("slack-token", "xapp-", r"xapp-\d-[A-Za-z0-9-]{20,255}+"),
    _token("slack-webhook", "hooks.slack.com/", r"hooks\.slack\.com/(?:services|workflows)/[\w/+-]{20,120}+"),
    _token("discord-webhook", "discord", r"discord(?:app)?\.com/api/webhooks/\d{10,25}/[\w-]{30,120}+"),
    _token("npm-token", "npm_", r"npm_[A-Za-z0-9]{36,64}+"),
    _token("pypi-token", "pypi-", r"pypi-[\w-]{40,300}+"),
    _token("rubygems-token", "rubygems_", r"rubygems_[0-9a-f]{48}"),
    _token("crates-token", "cio", r"cio[A-Za-z0-9]{32}", must_look_random=True),
    _token("docker-token", "dckr_pat_ dckr_oat_", r"dckr_[po]at_[\w-]{20,64}+"),
    _token("aws-access-key-id", "akia asia abia acca", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}"),
    _token("google-api-key", "aiza", r"AIza[\w-]{35}"),
    _token("google-oauth-secret", "gocspx-", r"GOCSPX-[\w-]{20,64}+"),
    _token("google-oauth-token", "ya29.", r"ya29\.[\w-]{20,400}+"),
    _token("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_", r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,255}+"),
    _token("stripe-webhook-secret", "whsec_", r"whsec_[A-Za-z0-9+/=]{24,128}+"),
    _token("twilio-key", "sk", r"SK[0-9a-f]{32}"),
    _token("sendgrid-key", "sg.", r"SG\.[\w-]{16,64}\.[\w-]{16,64}+"),
    _token("mailgun-key", "key-", r"key-[0-9a-f]{32}"),
    _token("mailchimp-key", "-us", r"[0-9a-f]{32}-us\d{1,2}"),
    _token("hugging-face-token", "hf_", r"hf_[A-Za-z0-9]{30,64}+"),
    _token("groq-key", "gsk_", r"gsk_[A-Za-z0-9]{40,64}+"),
    _token("xai-key", "xai-", r"xai-[A-Za-z0-9]{40,128}+"),
    _token("perplexity-key", "pplx-", r"pplx-[A-Za-z0-9]{40,64}+"),
    _token("replicate-token", "r8_", r"r8_[A-Za-z0-9]{37,40}+"),
    _token("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", r"do[por]_v1_[0-9a-f]{64}"),
    _token("databricks-token", "dapi", r"dapi[0-9a-f]{32}(?:-\d)?"),
    _token("shopify-token", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    _token("square-token", "sq0", r"sq0(?:atp|csp|idp)-[\w-]{22,64}+"),
    _token("telegram-token", ":aa", r"\d{8,10}:AA[\w-]{33}"),
    _token("linear-key", "lin_api_ lin_oauth_", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,64}+"),
    _token("notion-token", "ntn_ secret_", r"(?:ntn_|secret_)[A-Za-z0-9]{40,64}+"),
    _token("figma-token", "figd_", r"figd_[\w-]{30,64}+"),
    _token("postman-key", "pmak-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    _token("new-relic-key", "nrak- nrii-", r"NR(?:AK|II)-[A-Za-z0-9_-]{27,40}+"),
    _token("grafana-token", "glsa_ glc_", r"gl(?:sa|c)_[A-Za-z0-9+/=_]{30,200}+"),
    _token("vault-token", "hvs. hvb. hvr.", r"hv[sbr]\.[\w-]{24,200}+"),
    _token("terraform-token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{40,100}+"),
    _token("doppler-token", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{40,80}+"),
    _token("planetscale-token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[\w.-]{32,64}+"),
    _token("supabase-token", "sbp_ sb_secret_", r"(?:sbp_[0-9a-f]{40}|sb_secret_[\w-]{20,64}+)"),
    _token("sentry-token", "sntrys_ sntryu_", r"sntry[su]_[\w=+/-]{40,300}+"),
    _token("atlassian-token", "atatt3 atbb atctt3", r"(?:ATATT3|ATCTT3|ATBB)[\w=.-]{20,250}+"),
    _token("airtable-token", "pat", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    _token("netlify-token", "nfp_", r"nfp_[A-Za-z0-9_]{36,64}+"),
    _token("fly-token", "fm1_ fm2_ fo1_", r"f(?:m[12]|o1)_[\w+/=-]{40,600}+"),
    _token("heroku-key", "hrku-", r"HRKU-[\w-]{36,80}+"),
    _token("age-secret-key", "age-secret-key-1", r"AGE-SECRET-KEY-1[A-Z0-9]{58}"),
    _token("jwt", "eyj", r"eyJ[\w-]{8,}+\.[\w-]{8,}+\.[\w-]{8,}+"),
    _token("discord-token", ".", r"[MNO][A-Za-z0-9_-]{23,27}\.[\w-]{6}\.[\w-]{27,40}+", must_look_random=True),
)  # fmt: skip

_IN_CONTEXT: Final = (
    SecretRule(
        "private-key",
        ("private key",),
        # With its end, or, cut off, with the lines that look like its body; the mere header is no secret.
        re.compile(
            r"(?P<secret>-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:[^-]*+(?:-(?!----)[^-]*+)*+-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            r"|(?:(?:\s|\\n|\\r){1,4}[A-Za-z0-9+/=]{16,})+))"
        ),
    ),
    SecretRule(
        "uri-password",
        ("://",),
        re.compile(r"://[^\s/:@'\"`\[]{0,100}:(?P<secret>[^\s/@'\"`]{3,256})@[\w\[.-]"),
        lambda match: not is_uri_reference(match["secret"]),
    ),
    SecretRule(
        "uri-token",
        ("://",),
        re.compile(r"://(?P<secret>[^\s/:@'\"`]{20,256})(?::x-oauth-basic)?@[\w\[.-]"),
        lambda match: looks_random(match["secret"]),
    ),
    SecretRule(
        "authorization-header",
        ("authorization",),
        re.compile(
            r"(?i:authorization)[\"']?\s{0,4}[:=,]\s{0,4}[\"'f]{0,2}(?i:bearer|basic|token|apikey|digest)\s{1,4}"
            r"(?P<secret>[A-Za-z0-9._~+/=-]{8,4096}+)"
        ),
        lambda match: not is_reference(match["secret"]),
    ),
    SecretRule(
        "bearer-token",
        ("bearer ",),
        re.compile(r"(?<![A-Za-z])(?i:bearer) {1,4}(?P<secret>[A-Za-z0-9._~+/=-]{16,4096}+)"),
        lambda match: looks_random(match["secret"]),
    ),
    SecretRule(
        "aws-secret-access-key",
        (f"{PLACEHOLDER_START}aws-access-key-id]",),
        re.compile(r"aws-access-key-id\][\"'\s:,;/|]{1,6}(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"),
    ),
    SecretRule(
        "azure-key",
        ("accountkey=", "sharedaccesskey="),
        re.compile(r"(?i:AccountKey|SharedAccessKey)=(?P<secret>[A-Za-z0-9+/]{40,90}={0,2})"),
    ),
    SecretRule("azure-signature", ("sig=",), re.compile(r"[?&]sig=(?P<secret>[A-Za-z0-9%+/=_-]{32,128}+)")),
    SecretRule(
        "password",
        ("pass", "pwd", "kennwort"),
        re.compile(rf"(?i:{_LOGIN_WORDS}){_ASSIGNED}{_VALUE}"),
        _accepts_password,
    ),
    SecretRule(
        "password",
        ("--pass",),
        re.compile(r"--pass(?:word|wd|phrase)?[ =](?P<quote>[\"']?)(?P<secret>[^\s\"']{4,256}+)"),
        _accepts_password,
    ),
    SecretRule(
        "secret-value",
        ("secret", "token", "key", "credential", "_auth"),
        re.compile(rf"(?i:{_CREDENTIAL_WORDS}){_ASSIGNED}{_VALUE}"),
        lambda match: looks_random(match["secret"]),
    ),
)


def is_uri_reference(value: str) -> bool:
    """Tell whether what stands where an address has its password is a placeholder for one."""
    return value.lower() in {"password", "pass", "passwd", "pwd", "secret", "token", "***"} or bool(
        re.match(r"\$|<|\{|%|\[|\*+$|x+$|\.+$", value, re.IGNORECASE)
    )


RULES: Final = (*_PREFIXED, *_IN_CONTEXT)
_ANY_HINT: Final = re.compile("|".join(sorted({re.escape(hint) for rule in RULES for hint in rule.hints})))


def holds_any_hint(lowered: str) -> bool:
    """Tell whether any rule could match a text, given in lower case: most texts hold none of the hints."""
    return _ANY_HINT.search(lowered) is not None
