"""Where the service listens: HTTPS, Unix sockets, slow clients, a place that is taken."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import http.client
import os
import socket
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from uvicorn.server import ServerState

from edgeveil.cli.app import main
from edgeveil.cli.serve import _state_folder
from edgeveil.serve import guards
from edgeveil.serve.guards import network_of
from edgeveil.serve.server import Place
from tests.serve.running import Service, request


def certificate(folder):
    """A certificate for localhost that nobody else trusts."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 7, now, now + datetime.timedelta(1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), False)
        .add_extension(x509.BasicConstraints(True, None), True)
        .sign(key, hashes.SHA256())
    )
    (folder / "chain.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return folder / "chain.pem", folder / "key.pem"


def test_by_https_with_a_certificate_and_the_curators_side_closed(network, tmp_path):
    chain, key = certificate(tmp_path)
    options = ["--certificate", str(chain), "--private-key", str(key)]
    running = Service(tmp_path, network, options=options, curator=False).start(wait=False)
    try:
        running.wait_for_members(certificate=chain)
        found = running.get("/me/protection", network.nodes[1], certificate=chain)
        assert found.status == 200
        assert found.headers["Strict-Transport-Security"]
        with pytest.raises(OSError, match="refused"):
            request(running.curator_port, "/health")
        with socket.create_connection(("127.0.0.1", running.port), timeout=12) as silent:
            began = time.monotonic()
            assert silent.recv(100) == b""  # it says nothing, and is not waited for
            assert time.monotonic() - began < 8
    finally:
        running.stop()


def test_on_unix_sockets_for_a_proxys_group_and_for_the_curator_alone(network, tmp_path):
    path, curators = tmp_path / "members", tmp_path / "curator"
    options = ["--at", f"unix:{path}", "--curator", f"unix:{curators}"]
    running = Service(tmp_path, network, options=options, curator=False)

    def connected():
        line = socket.socket(socket.AF_UNIX)
        try:
            line.connect(str(path))
        except OSError:
            line.close()
            raise
        return line

    try:
        for _ in range(2):  # a socket that a killed process left behind is no obstacle
            running.start(wait=False)
            with running.until(connected) as line:
                token = running.token(network.nodes[1])
                head = f"GET /me/protection HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}"
                line.sendall(f"{head}\r\n\r\n".encode())
                assert b" 200 " in line.recv(1000)
            assert stat.S_IMODE(path.stat().st_mode) == 0o660
            assert stat.S_IMODE(curators.stat().st_mode) == 0o600
            running.stop(9)
    finally:
        running.stop()


def half_a_head(port):
    line = socket.create_connection(("127.0.0.1", port), timeout=12)
    line.sendall(b"GET / HTTP/1.1\r\nX: ")
    return line


def answered(port, more, **headers):
    """A connection on which a request was answered, and then come bytes that begin no other."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=12)
    for _ in range(1 if headers else 2):  # a second request is answered as ever
        line.request("GET", "/icon.svg", headers=headers)
        assert line.getresponse().read()
    line.sock.sendall(more)
    return line.sock


def unread(port):
    """A client that asks for 12 MB and reads nothing of it."""
    line = socket.create_connection(("127.0.0.1", port), timeout=12)
    asked = b"GET /member.js HTTP/1.1\r\n\r\n" * 3000
    line.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while asked:
            asked = asked[line.send(asked) :]
    line.settimeout(12)
    return line


def test_slow_clients_are_sent_away_and_hold_up_nobody(service, network):
    lines = [half_a_head(service.port) for _ in range(50)]
    lines.append(answered(service.port, b"\r\n"))
    lines.append(answered(service.port, b"x", **{"Content-Length": "900"}))
    began, lazy = time.monotonic(), unread(service.port)
    try:
        assert service.get(member=network.nodes[5]).status == 200
        for line in lines:
            assert line.recv(100) == b""  # TimeoutError if it stays open
        assert time.monotonic() - began < 10
        time.sleep(max(0, began + 7 - time.monotonic()))
        got = 0
        with contextlib.suppress(ConnectionError):
            while more := lazy.recv(1 << 20):
                got += len(more)
        assert got < 3000 * len(service.get("/member.js").body)
    finally:
        for line in (*lines, lazy):
            line.close()


def test_one_network_cannot_have_all_connections(service):
    def open_from(address):
        place = ("127.0.0.1", service.port)
        return socket.create_connection(place, timeout=4, source_address=(address, 0))

    def answered(line):
        line.sendall(b"GET /icon.svg HTTP/1.1\r\nConnection: close\r\n\r\n")
        return b" 200 " in line.recv(1000)

    with contextlib.ExitStack() as stack:
        lines = [stack.enter_context(open_from("127.0.0.2")) for _ in range(200)]
        one_more = stack.enter_context(open_from("127.0.0.2"))
        with contextlib.suppress(ConnectionError):
            assert one_more.recv(1000) == b""
        assert answered(stack.enter_context(open_from("127.0.0.3")))
        assert answered(lines[0])
        assert answered(lines[-1])
    with open_from("127.0.0.2") as again:
        assert answered(again)


def test_all_networks_together_cannot_have_more_connections_than_the_bound(monkeypatch):
    monkeypatch.setattr(guards, "_MOST_OPEN", 3)
    config = Place.of("0").config(guards.guarded({}, ("icon.svg",), guards.Metrics()))
    config.load()
    state = ServerState()

    def answered(line):
        with contextlib.suppress(ConnectionError):
            line.sendall(b"GET /icon.svg HTTP/1.1\r\nHost: x\r\n\r\n")
            return line.recv(1000).startswith(b"HTTP/1.1 200 ")
        return False

    def ask(port):
        with contextlib.ExitStack() as stack:
            lines = [
                stack.enter_context(
                    socket.create_connection(("127.0.0.1", port), 9, (f"127.0.0.{number}", 0))
                )
                for number in range(2, 7)  # each from a network of its own
            ]
            assert [answered(line) for line in lines] == [True, True, True, False, False]
        while state.connections:
            time.sleep(0.01)
        with socket.create_connection(("127.0.0.1", port), 9) as again:
            assert answered(again)

    async def connect():
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: guards.GuardedProtocol(config, state, {}), "127.0.0.1", 0
        )
        async with server:
            await asyncio.to_thread(ask, server.sockets[0].getsockname()[1])
            while state.connections:
                await asyncio.sleep(0.01)

    with ThreadPoolExecutor(1) as pool:  # this thread may have a browser's loop in it
        pool.submit(asyncio.run, asyncio.wait_for(connect(), 30)).result()


def test_half_of_an_ipv6_address_is_a_network():
    one, two, other = "2001:db8:1:2::1", "2001:db8:1:2:ffff::2", "2001:db8:1:3::1"
    assert network_of((one, 1)) == network_of((two, 1)) != network_of((other, 1))
    assert network_of(("192.0.2.1", 1)) == "192.0.2.1"
    assert network_of(None) == ""


def test_a_place_that_is_taken_is_a_plain_error(service, network, tmp_path):
    made = Service(tmp_path, network)
    made.port = service.port
    made.start(wait=False)
    assert made.process.wait(timeout=60) == 1
    made.log.close()
    said = (tmp_path / "log").read_text()
    assert f"cannot listen at http://127.0.0.1:{service.port}: Address already in use" in said
    assert "Traceback" not in said


def test_without_its_packages_the_command_says_what_is_missing(tmp_path):
    program = (
        "import sys\nsys.modules['starlette'] = None\nfrom edgeveil.cli.app import main\n"
        "sys.exit(main(['serve', '--trial']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert "pip install 'edgeveil[serve]'" in done.stderr


def test_a_list_that_no_budget_could_pay_for_is_refused_at_once(network, tmp_path, capsys):
    made = Service(tmp_path, network, cap=2.0)
    words = ["serve", str(made.graph), "--ledger", str(made.ledger), "--epsilon", "3"]
    assert main([*words, "--keys", str(tmp_path / "keys.json")]) == 2
    assert "--epsilon 3 is above the ledger's cap, 2" in capsys.readouterr().err


def test_a_folder_that_others_can_write_to_is_no_place_for_keys_and_lists(network, tmp_path):
    made = Service(tmp_path, network)
    made.state.mkdir()
    made.state.chmod(0o770)
    made.start(wait=False)
    assert made.process.wait(timeout=60) == 1
    made.log.close()
    assert "others can write to" in (tmp_path / "log").read_text()


def test_where_the_package_cannot_be_written_to_compiled_loops_are_kept_in_the_state(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("os.access", lambda *_: False)
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")  # put back afterwards
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    _state_folder(tmp_path / "state")
    assert os.environ["NUMBA_CACHE_DIR"] == str(tmp_path / "state" / "compiled")


def test_connections_do_not_use_up_the_files_that_a_process_may_open(service):
    (line,) = (
        line
        for line in Path(f"/proc/{service.process.pid}/limits").read_text().splitlines()
        if line.startswith("Max open files")
    )
    *_, soft, hard, _ = line.split()
    assert soft == hard
