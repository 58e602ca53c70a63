"""Real sidecar processes with a tiny application: start, find, replace, stop, and what may go wrong on the way."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import psutil
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.api.v1 import memory_service_pb2 as memory
from sidecar.api.v1.memory_pb2 import CallContext
from sidecar.client import AsyncSidecar, DataFolder, Endpoint, Launch, Sidecar, find_or_start, restart, stop
from sidecar.client.build import Build
from sidecar.client.channel import bearer, open_channel
from sidecar.client.endpoint import Holder
from sidecar.client.handshake import CHALLENGE, INSTANCE, KNOWLEDGE, PROOF, PROTOCOL, VERSION
from sidecar.client.methods import GET_STATUS, STREAM_EVIDENCE_PATH, Method, Request, Response
from sidecar.client.processes import end_process, is_alive
from sidecar.errors import (
    InternalError,
    ProtocolMismatchError,
    ShuttingDownError,
    SidecarHungError,
    SidecarNotRunningError,
    SidecarStartError,
    TooLargeMessageError,
    TooManyRequestsError,
    UntrustedPathError,
)
from sidecar.server.exit_codes import EXIT_ALREADY_RUNNING, EXIT_STOPPED, EXIT_UNTRUSTED

SCRIPT = Path(__file__).parent / "tiny_sidecar.py"
PATIENCE_S = 20.0
CLIENT = """
import sys
from pathlib import Path
from sidecar.client import Launch, Sidecar
command = (sys.executable, sys.argv[1], "--home", sys.argv[2])
with Sidecar.connect(Path(sys.argv[2]), launch=Launch(command=command)) as sidecar:
    sys.stdout.write(f"{sidecar.get_status().pid}\\n")
"""


def launch(home: Path, *extra: str, build: Build | None = None) -> Launch:
    """Start the tiny sidecar rather than the real one."""
    command = (sys.executable, str(SCRIPT), "--home", str(home), *extra)
    return Launch(command=command, hung_after_s=1.0, build=build or Build("1.0", 1))


def until(condition: Callable[[], bool]) -> None:
    """Wait until it is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def processes_of(home: Path) -> list[int]:
    """Return the sidecar processes of a data folder that live."""
    found = []
    for process in psutil.process_iter(["pid", "cmdline", "status"]):
        words = process.info["cmdline"] or []
        if str(SCRIPT) in words and str(home) in words and "-c" not in words:
            found.append(process.info["pid"])
    return [pid for pid in found if psutil.pid_exists(pid)]


def pids_seen_by_clients(home: Path, count: int) -> set[str]:
    """Let so many client processes connect at once; return the sidecar pids that they saw."""
    command = (sys.executable, "-c", CLIENT, str(SCRIPT), str(home))
    clients = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    answers = [client.communicate(timeout=60)[0].strip() for client in clients]
    assert all(client.returncode == 0 for client in clients)
    return set(answers)


def raw_call(endpoint: Endpoint, method: Method[Request, Response], request: bytes, token: str | None) -> bytes:
    """Call with bytes and a token of our choice."""
    with open_channel(endpoint) as channel:
        call = channel.unary_unary(method.path, request_serializer=bytes, response_deserializer=bytes)
        answer: bytes = call(request, timeout=PATIENCE_S, metadata=bearer(token) if token is not None else ())
        return answer


def code_of(failure: object) -> object:
    """Return the status code of a failed call, which the types hide."""
    assert isinstance(failure, grpc.Call)
    return failure.code()


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Make data folders whose sidecars end with the test."""
    made: list[Path] = []

    def make(name: str) -> Path:
        made.append(tmp_path / name)
        return made[-1]

    yield make
    for home in made:
        holder = Holder.read(DataFolder(home)) if home.is_dir() and not home.is_symlink() else None
        if holder is not None:
            assert end_process(holder, wait_s=10)
        assert not processes_of(home)


@pytest.fixture
def home(homes: Callable[[str], Path]) -> Path:
    """A data folder that does not exist yet."""
    return homes("home")


@pytest.fixture
def sidecar(home: Path) -> Iterator[Sidecar]:
    """A client of a running sidecar."""
    with Sidecar.connect(home, launch=launch(home), context=CallContext(client="test", project="p")) as client:
        yield client


# --- finding and starting


def test_twenty_clients_at_cold_start_share_one_sidecar(home: Path) -> None:
    """However many start at once, one process serves the data folder."""
    pids = pids_seen_by_clients(home, 20)
    assert pids == {str(pid) for pid in processes_of(home)}
    assert len(pids) == 1
    assert home.with_name("home.spawned").read_text() == "x"


def test_killed_sidecar_is_replaced_once(home: Path) -> None:
    """A dead sidecar leaves its files behind; eight clients at once still start one new one."""
    first = find_or_start(DataFolder(home), launch=launch(home))
    os.kill(first.holder.pid, signal.SIGKILL)
    pids = pids_seen_by_clients(home, 8)
    assert len(pids) == 1
    assert pids != {str(first.holder.pid)}


def test_without_start_a_missing_sidecar_is_told_and_no_folder_made(home: Path) -> None:
    """Whoever only looks changes nothing."""
    with pytest.raises(SidecarNotRunningError):
        Sidecar.connect(home, start=False)
    assert not home.exists()


def test_failed_start_says_what_the_process_said(home: Path) -> None:
    """The client shows the reason, since the user never sees the process's output."""
    with pytest.raises(SidecarStartError, match=r"ended with 1.*ValueError: the store is on fire"):
        Sidecar.connect(home, launch=launch(home, "--start-problem", "the store is on fire"))
    assert "on fire" not in (home / "logs" / "sidecar.log").read_text()


def test_missing_program_is_told(home: Path) -> None:
    """A broken installation is not a time-out."""
    with pytest.raises(SidecarStartError, match="cannot be run"):
        Sidecar.connect(home, launch=Launch(command=("/no/such/program",)))


def test_second_sidecar_ends_with_its_code_and_the_first_stays(home: Path, sidecar: Sidecar) -> None:
    """With gRPC alone it would steal the socket."""
    second = subprocess.run((sys.executable, SCRIPT, "--home", home), check=False, capture_output=True, text=True)
    assert second.returncode == EXIT_ALREADY_RUNNING
    assert "already runs" in second.stderr
    with Sidecar.connect(home, start=False, launch=launch(home)) as again:
        assert again.get_status().pid == sidecar.get_status().pid


def test_two_folders_have_two_sidecars(homes: Callable[[str], Path]) -> None:
    """A sidecar belongs to its folder, not to the machine."""
    a, b = homes("a"), homes("b")
    with Sidecar.connect(a, launch=launch(a)) as first, Sidecar.connect(b, launch=launch(b)) as second:
        assert first.get_status().pid != second.get_status().pid
        stop(a)
        assert second.get_status().instance_id


def test_proxy_variables_change_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that is set for the web must not see, nor break, calls on this machine."""
    for name in ("http_proxy", "https_proxy", "grpc_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("SIDECAR_TRANSPORT", "tcp")
    with Sidecar.connect(home, launch=launch(home)) as client:
        assert client.endpoint.address.startswith("127.0.0.1:")
        assert client.get_status().pid


def test_hostile_surroundings_do_not_reach_the_sidecar(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repository that an agent happens to work in must not run code in the sidecar."""
    trap = tmp_path / "trap"
    trap.mkdir()
    (trap / "sitecustomize.py").write_text("raise SystemExit('trapped')")
    (trap / "sidecar.py").write_text("raise SystemExit('trapped')")
    monkeypatch.chdir(trap)
    monkeypatch.setenv("PYTHONPATH", str(trap))
    monkeypatch.setenv("LD_PRELOAD", str(trap / "missing.so"))
    with Sidecar.connect(home, launch=launch(home)) as client:
        environment = psutil.Process(client.get_status().pid).environ()
    assert not {"PYTHONPATH", "LD_PRELOAD"} & environment.keys()


def test_very_long_home_gets_a_short_socket(tmp_path: Path, homes: Callable[[str], Path]) -> None:
    """The kernel refuses socket paths over 107 bytes, and users have longer folders."""
    home = homes("/".join(["a-rather-long-folder-name"] * 6))
    with Sidecar.connect(home, launch=launch(home)) as client:
        path = client.endpoint.socket_path
        assert path is not None
        assert not path.is_relative_to(tmp_path)
        assert len(os.fsencode(path)) < 104
        assert client.get_status().pid
    stop(home)
    assert not path.exists()


def test_files_are_closed_to_others(home: Path, sidecar: Sidecar) -> None:
    """Whatever the sidecar makes, nobody else can read it."""
    paths = [home, *home.rglob("*")]
    assert len(paths) > 5
    assert [path for path in paths if stat.S_IMODE(path.lstat().st_mode) & 0o077] == []


def test_host_sees_the_end_of_a_client_though_the_sidecar_lives(home: Path) -> None:
    """A sidecar that kept its starter's stdout would leave the agent waiting for the end of it."""
    command = (sys.executable, "-c", CLIENT, str(SCRIPT), str(home))
    finished = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30)
    assert processes_of(home) == [int(finished.stdout)]


# --- endpoint files that lie


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'{"pid": "x"}', b"\xff\xfe", b"[" * 10_000])
def test_nonsense_in_the_endpoint_file_is_as_good_as_none(home: Path, content: bytes) -> None:
    """A torn write or a stray editor must not keep clients out."""
    folder = DataFolder(home)
    folder.prepare()
    folder.endpoint_path.write_bytes(content)
    folder.endpoint_path.chmod(0o600)
    with Sidecar.connect(home, launch=launch(home)) as client:
        assert client.get_status().pid


def test_endpoint_file_that_is_damaged_meanwhile_is_put_back(home: Path, sidecar: Sidecar) -> None:
    """The sidecar notices that clients would not find it any more."""
    DataFolder(home).endpoint_path.write_text("{")
    with Sidecar.connect(home, launch=launch(home)) as again:
        assert again.get_status().pid == sidecar.get_status().pid


def test_endpoint_file_with_a_reused_pid_is_no_proof(home: Path) -> None:
    """The pid is that of a live process, this one; it is neither taken for a sidecar nor ended."""
    folder = DataFolder(home)
    first = find_or_start(folder, launch=launch(home))
    stop(home)
    reused = Holder(os.getpid(), first.holder.started_at - 3600, first.holder.instance_id)
    Endpoint(reused, first.address, first.token, first.build, first.max_message_bytes).write(folder)
    reused.write(folder)
    assert not is_alive(reused)
    with pytest.raises(SidecarNotRunningError):
        stop(home, force=True)
    assert find_or_start(folder, launch=launch(home)).holder.pid not in {os.getpid(), first.holder.pid}


@pytest.mark.parametrize("name", ["endpoint.json", "sidecar.lock", "holder.json"])
def test_link_in_place_of_our_file_is_refused(home: Path, tmp_path: Path, name: str) -> None:
    """Following it would write to, or trust, what somebody else chose."""
    folder = DataFolder(home)
    folder.prepare()
    (tmp_path / "target").write_text("{}")
    (home / name).symlink_to(tmp_path / "target")
    if name == "holder.json":
        # Never read before it was written, so it is just replaced.
        find_or_start(folder, launch=launch(home))
        assert not (home / name).is_symlink()
    else:
        with pytest.raises((UntrustedPathError, SidecarStartError), match="symbolic link"):
            find_or_start(folder, launch=launch(home))
    assert (tmp_path / "target").read_text() == "{}"


def test_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    """In a folder where all can write, somebody may have put it there first."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(UntrustedPathError, match="symbolic link"):
        Sidecar.connect(tmp_path / "link", launch=launch(tmp_path / "link"))
    served = subprocess.run((sys.executable, SCRIPT, "--home", tmp_path / "link"), check=False, capture_output=True)
    assert served.returncode == EXIT_UNTRUSTED
    assert list((tmp_path / "real").iterdir()) == []


def test_pipe_in_place_of_the_log_is_refused(home: Path) -> None:
    """Opening it would wait for a reader for ever."""
    folder = DataFolder(home)
    folder.prepare()
    os.mkfifo(folder.log_path, 0o600)
    with pytest.raises(SidecarStartError, match="not a regular file"):
        find_or_start(folder, launch=launch(home))


class Impostor(health_pb2_grpc.HealthServicer):  # type: ignore[misc]
    """Listens where a dead sidecar did, answers that all is well, and keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def Check(  # noqa: N802
        self, request: health_pb2.HealthCheckRequest, context: grpc.ServicerContext
    ) -> health_pb2.HealthCheckResponse:
        metadata = dict(context.invocation_metadata())
        self.heard.append(str(metadata))
        # The best it can do without the token: send the challenge back.
        context.send_initial_metadata(
            (
                (PROOF, str(metadata[CHALLENGE])),
                (INSTANCE, "0" * 16),
                (VERSION, "1.0"),
                (PROTOCOL, "1"),
            )
        )
        return health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)


def test_impostor_at_the_address_is_not_trusted(home: Path) -> None:
    """Whoever listens where a dead sidecar did cannot prove to know the token, and never sees it."""
    folder = DataFolder(home)
    first = find_or_start(folder, launch=launch(home))
    stop(home)
    impostor = Impostor()
    server = grpc.server(ThreadPoolExecutor(max_workers=1))
    health_pb2_grpc.add_HealthServicer_to_server(impostor, server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    known = Holder(first.holder.pid, first.holder.started_at, "0" * 16)
    Endpoint(known, address, first.token, first.build, first.max_message_bytes).write(folder)
    second = find_or_start(folder, launch=launch(home))
    server.stop(None).wait()
    assert second.address != address
    assert impostor.heard
    assert first.token not in "".join(impostor.heard)


# --- one that does not answer


def test_hung_sidecar_is_told_and_restart_replaces_it(home: Path, sidecar: Sidecar) -> None:
    """A stopped process holds the lock for ever; clients say what helps instead of waiting with it."""
    pid = sidecar.get_status().pid
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(SidecarHungError, match="sidecar restart"):
        Sidecar.connect(home, launch=launch(home))
    with pytest.raises(SidecarHungError, match="sidecar restart"):
        sidecar.get_status(deadline_s=0.5)
    with pytest.raises(SidecarHungError, match=r"within [1-9]\d* s"):
        stop(home, wait_s=0.5)
    replaced = restart(home, launch=launch(home), wait_s=0.5)
    assert replaced.holder.pid != pid
    assert sidecar.get_status().pid == replaced.holder.pid


# --- the socket


def test_socket_that_is_deleted_is_put_back(home: Path, sidecar: Sidecar) -> None:
    """Programs that clean up folders must not cut clients off."""
    path = sidecar.endpoint.socket_path
    assert path is not None
    path.unlink()
    until(path.exists)
    with Sidecar.connect(home, start=False, launch=launch(home)) as again:
        assert again.get_status().pid == sidecar.get_status().pid


def test_socket_that_is_stolen_is_taken_back(home: Path, sidecar: Sidecar) -> None:
    """Another server may bind the same path, whether by mistake or not."""
    path = sidecar.endpoint.socket_path
    assert path is not None
    ours = path.stat().st_ino
    with socket.socket(socket.AF_UNIX) as thief:
        path.unlink()
        thief.bind(str(path))
        until(lambda: path.stat().st_ino == ours)
    with Sidecar.connect(home, start=False, launch=launch(home)) as again:
        assert again.get_status().pid == sidecar.get_status().pid


@pytest.mark.parametrize("victim", ["run", "sidecar.lock"])
def test_sidecar_that_cannot_be_found_any_more_ends(home: Path, sidecar: Sidecar, victim: str) -> None:
    """Without its socket, or with a lock that another could take too, it would live on beside the next one."""
    old = sidecar.endpoint.holder
    if victim == "run":
        for path in (home / victim).iterdir():
            path.unlink()
    else:
        (home / victim).unlink()
    until(lambda: not is_alive(old))
    assert sidecar.get_status().pid != old.pid


# --- the end


def test_calls_under_way_are_answered_when_it_stops(home: Path, sidecar: Sidecar) -> None:
    """SIGTERM ends no call that was accepted, and a watch of health does not hold the end up."""
    endpoint = sidecar.endpoint
    with open_channel(endpoint) as channel:
        health = channel.unary_stream(
            "/grpc.health.v1.Health/Watch", request_serializer=bytes, response_deserializer=bytes
        )(b"")
        assert next(health) == b"\x08\x01"
        recall = channel.unary_unary(
            "/sidecar.api.v1.MemoryService/Recall",
            request_serializer=memory.RecallRequest.SerializeToString,
            response_deserializer=memory.RecallResponse.FromString,
        ).future(memory.RecallRequest(query="until stop"), metadata=bearer(endpoint.token))
        until(lambda: sidecar.get_status().memory_count == 1)
        os.kill(endpoint.holder.pid, signal.SIGTERM)
        assert recall.result(timeout=PATIENCE_S) is not None
        with contextlib.suppress(grpc.RpcError):
            assert list(health) in ([], [b"\x08\x02"])
    until(lambda: not is_alive(endpoint.holder))
    assert not DataFolder(home).endpoint_path.exists()
    assert not (home / "run" / "sock").exists()
    assert '"sidecar stopped"' in DataFolder(home).log_path.read_text()


def test_open_stream_is_ended_in_order(home: Path, sidecar: Sidecar) -> None:
    """What was taken is acknowledged; then the sender is told to come again."""

    def batches() -> Iterator[evidence.StreamEvidenceRequest]:
        yield evidence.StreamEvidenceRequest(batch_id=1)
        until(lambda: not is_alive(holder))

    holder = sidecar.endpoint.holder
    answers = sidecar.stream_evidence(batches())
    assert next(answers).batch_id == 1
    os.kill(holder.pid, signal.SIGTERM)
    with pytest.raises(ShuttingDownError):
        next(answers)


def test_served_process_ends_with_zero(home: Path) -> None:
    """A service manager must not take an orderly stop for a crash."""
    process = subprocess.Popen((sys.executable, SCRIPT, "--home", home))
    until(DataFolder(home).endpoint_path.exists)
    stop(home)
    assert process.wait(timeout=PATIENCE_S) == EXIT_STOPPED


def test_idle_sidecar_ends_if_told_to(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Off by default; whoever sets it gets the memory back, and the next call starts it anew."""
    monkeypatch.setenv("SIDECAR_IDLE_EXIT_S", "0.3")
    with Sidecar.connect(home, launch=launch(home)) as client:
        first = client.endpoint.holder
        until(lambda: not is_alive(first))
        assert client.get_status().pid != first.pid


# --- versions


def test_newer_client_replaces_an_older_sidecar(home: Path) -> None:
    """After an update the old process must not go on misreading what the new clients send."""
    old = find_or_start(DataFolder(home), launch=launch(home))
    newer = launch(home, "--version", "1.1", build=Build("1.1", 1))
    with Sidecar.connect(home, launch=newer) as client:
        assert client.get_status().version == "1.1"
        assert client.get_status().pid != old.holder.pid
        # An older client works with it and leaves it alone.
        with Sidecar.connect(home, launch=launch(home)) as older:
            assert older.get_status().pid == client.get_status().pid


def test_older_sidecar_is_replaced_once_only(home: Path) -> None:
    """If what a client starts is itself older, it takes what it gets rather than restart it for ever."""
    newer = launch(home, "--version", "1.0", build=Build("1.1", 1))
    find_or_start(DataFolder(home), launch=launch(home))
    with Sidecar.connect(home, launch=newer) as client:
        assert client.get_status().version == "1.0"


def test_newer_protocol_is_told(home: Path) -> None:
    """An old client cannot guess what a new protocol means, and must not end the newer sidecar."""
    newer = launch(home, "--version", "2.0", "--protocol", "2", build=Build("2.0", 2))
    running = find_or_start(DataFolder(home), launch=newer)
    for start in (True, False):
        with pytest.raises(ProtocolMismatchError, match="update memory-sidecar"):
            Sidecar.connect(home, start=start, launch=launch(home))
    assert is_alive(running.holder)


def test_older_protocol_is_replaced_only_where_starting_is_allowed(home: Path) -> None:
    """The watcher, which the sidecar itself started, must not end it."""
    old = find_or_start(DataFolder(home), launch=launch(home))
    newer = launch(home, "--version", "2.0", "--protocol", "2", build=Build("2.0", 2))
    with pytest.raises(ProtocolMismatchError, match="sidecar restart"):
        Sidecar.connect(home, start=False, launch=newer)
    assert is_alive(old.holder)
    with Sidecar.connect(home, launch=newer) as client:
        assert client.get_status().protocol == 2


# --- calls


@pytest.mark.parametrize("token", [None, "", "wrong"])
def test_call_without_the_token_is_refused(sidecar: Sidecar, token: str | None) -> None:
    """Unary and streaming alike, and before the request is even parsed; health alone is open."""
    with pytest.raises(grpc.RpcError) as refused:
        raw_call(sidecar.endpoint, GET_STATUS, b"\xff\xff", token)
    assert code_of(refused.value) is grpc.StatusCode.UNAUTHENTICATED
    for path in (STREAM_EVIDENCE_PATH, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"):
        with open_channel(sidecar.endpoint) as channel:
            stream = channel.stream_stream(path, request_serializer=bytes, response_deserializer=bytes)
            with pytest.raises(grpc.RpcError) as stream_refused:
                list(stream(iter([b""]), timeout=PATIENCE_S, metadata=bearer(token) if token is not None else ()))
            assert code_of(stream_refused.value) is grpc.StatusCode.UNAUTHENTICATED
    with open_channel(sidecar.endpoint) as channel:
        check = channel.unary_unary(
            "/grpc.health.v1.Health/Check", request_serializer=bytes, response_deserializer=bytes
        )
        assert check(b"", timeout=PATIENCE_S) == b"\x08\x01"


def test_challenge_without_the_token_learns_that_it_lives_and_no_more(sidecar: Sidecar) -> None:
    """Not even which version it is: whoever does not know the token may not choose an attack by it."""
    for knowledge in ("", "0" * 64):
        with open_channel(sidecar.endpoint) as channel:
            answer, call = health_pb2_grpc.HealthStub(channel).Check.with_call(
                health_pb2.HealthCheckRequest(),
                timeout=PATIENCE_S,
                metadata=((CHALLENGE, "a" * 32), (KNOWLEDGE, knowledge)),
            )
        told = {key for key, _ in call.initial_metadata() or ()}
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        assert not told & {PROOF, INSTANCE, VERSION, PROTOCOL}


def test_standing_streams_leave_room_for_calls_and_one_too_many_is_told(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With every place for streams taken, a call is answered; one stream more is told to come again."""
    monkeypatch.setenv("SIDECAR_MAX_CALLS", "8")
    release = threading.Event()

    def batches() -> Iterator[evidence.StreamEvidenceRequest]:
        yield evidence.StreamEvidenceRequest(batch_id=1)
        release.wait(PATIENCE_S)

    with Sidecar.connect(home, launch=launch(home)) as client:
        streams = [client.stream_evidence(batches()) for _ in range(8)]
        assert [next(stream).batch_id for stream in streams] == [1] * 8
        assert client.get_status().pid
        with pytest.raises(TooManyRequestsError):
            next(client.stream_evidence(batches()))
        release.set()
        assert not [each for stream in streams for each in stream]
        assert next(client.stream_evidence(batches())).batch_id == 1


def test_malformed_bytes_do_it_no_harm(home: Path, sidecar: Sidecar) -> None:
    """Neither HTTP nor nonsense nor a thousand broken messages end it or fill its log."""
    path = sidecar.endpoint.socket_path
    assert path is not None
    for garbage in (
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x00" * 4096,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 64,
    ):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            connection.sendall(garbage)
            connection.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionError):
                while connection.recv(65536):
                    pass
    for _ in range(300):
        with pytest.raises(grpc.RpcError):
            raw_call(sidecar.endpoint, GET_STATUS, b"\xff\xff\xff", sidecar.endpoint.token)
    assert sidecar.get_status().pid
    logs = DataFolder(home).log_path.stat().st_size + DataFolder(home).start_log_path.stat().st_size
    assert logs < 15_000


def test_request_says_who_calls_and_carries_a_key(sidecar: Sidecar) -> None:
    """Filled in by the client where the request does not say; the request itself stays as it was."""
    request = memory.RecallRequest(query="x")
    assert sidecar.recall(request).recall_id == "test/p"
    assert not request.HasField("context")
    assert sidecar.recall(memory.RecallRequest(query="x", context=CallContext(client="other"))).recall_id == "other/"
    keys = {sidecar.remember(memory.RememberRequest(content="x")).memory_id for _ in range(2)}
    assert len(keys) == 2
    assert "" not in keys
    assert sidecar.remember(memory.RememberRequest(content="x", request_key="mine")).memory_id == "mine"


def test_message_over_the_limit_is_told(sidecar: Sidecar) -> None:
    """Both sides have one limit, and the error names it."""
    limit = sidecar.endpoint.max_message_bytes
    with pytest.raises(TooLargeMessageError, match=str(limit)):
        sidecar.remember(memory.RememberRequest(content="x" * (limit + 1)))


def test_unforeseen_failure_travels_as_an_incident_without_its_text(home: Path, sidecar: Sidecar) -> None:
    """The text of an exception may quote a memory: it reaches neither the client nor the log."""
    with pytest.raises(InternalError) as failed:
        sidecar.recall(memory.RecallRequest(query="crash"))
    log = DataFolder(home).log_path.read_text()
    assert "secret" not in failed.value.message
    assert "secret" not in log
    lines = [json.loads(line) for line in log.splitlines()]
    incident = next(line for line in lines if line.get("incident") == failed.value.metadata["incident"])
    assert incident["error"][0] == "builtins.ValueError"


async def test_asynchronous_client_does_the_same(home: Path) -> None:
    """One implementation of finding and starting serves both clients."""
    async with await AsyncSidecar.connect(home, launch=launch(home), context=CallContext(client="a")) as client:
        first = (await client.get_status()).pid
        assert (await client.recall(memory.RecallRequest(query="x"))).recall_id == "a/"

        async def batches() -> AsyncIterator[evidence.StreamEvidenceRequest]:
            for number in range(3):
                yield evidence.StreamEvidenceRequest(batch_id=number)

        assert [answer.batch_id async for answer in client.stream_evidence(batches())] == [0, 1, 2]
        os.kill(first, signal.SIGKILL)
        assert (await client.get_status()).pid != first
        with pytest.raises(InternalError):
            await client.recall(memory.RecallRequest(query="crash"))


async def test_search_that_is_cancelled_ends(home: Path, sidecar: Sidecar) -> None:
    """Else a bridge whose client has gone would wait out the start of a sidecar before it ends itself."""
    os.kill(sidecar.endpoint.holder.pid, signal.SIGSTOP)
    before = threading.active_count()
    patient = Launch(start_wait_s=600, hung_after_s=600)
    search = asyncio.create_task(AsyncSidecar.connect(home, launch=patient))
    while threading.active_count() == before:
        await asyncio.sleep(0.01)
    search.cancel()
    with pytest.raises(asyncio.CancelledError):
        await search
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.get_running_loop().shutdown_default_executor()
    assert search.cancelled()


def test_shutdown_is_not_repeated_at_the_next_sidecar(home: Path, sidecar: Sidecar) -> None:
    """It would stop one that nobody meant."""
    os.kill(sidecar.endpoint.holder.pid, signal.SIGKILL)
    until(lambda: not is_alive(sidecar.endpoint.holder))
    with pytest.raises(SidecarNotRunningError):
        sidecar.shutdown(admin.ShutdownRequest())
    assert processes_of(home) == []
