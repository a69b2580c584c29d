"""Where the service listens: HTTPS, Unix sockets, an address that is taken."""

from __future__ import annotations

import datetime
import os
import socket
import stat
import subprocess
import sys

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from edgeveil.cli.serve import _state_folder
from tests.serve.running import Service, request


def certificate(folder):
    """A certificate for localhost that nobody else trusts."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), 7, now, now + datetime.timedelta(1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), False)
        .add_extension(x509.BasicConstraints(True, None), True)
        .sign(key, hashes.SHA256())
    )
    (folder / "chain.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return folder / "chain.pem", folder / "key.pem"


def test_https_serves_members_with_the_curator_side_closed(network, tmp_path):
    chain, key = certificate(tmp_path)
    options = ["--certificate", str(chain), "--private-key", str(key)]
    running = Service(tmp_path, network, options=options, curator=False).start(wait=False)
    try:
        running.wait_for_members(certificate=chain)
        answer = running.get("/me/protection", network.nodes[1], certificate=chain)
        assert answer.status == 200
        assert answer.headers["Strict-Transport-Security"]
        with pytest.raises(OSError, match="refused"):
            request(running.curator_port, "/health")
    finally:
        running.stop()


def test_unix_sockets_serve_proxy_group_and_curator_apart(network, tmp_path):
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


def test_address_in_use_is_a_plain_error(service, network, tmp_path):
    second = Service(tmp_path, network)
    second.port = service.port
    second.start(wait=False)
    assert second.process.wait(timeout=60) == 1
    second.log.close()
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


def test_state_folder_writable_by_others_is_refused(network, tmp_path):
    service = Service(tmp_path, network)
    service.state.mkdir()
    service.state.chmod(0o770)
    service.start(wait=False)
    assert service.process.wait(timeout=60) == 1
    service.log.close()
    assert "others can write to" in (tmp_path / "log").read_text()


def test_unwritable_package_keeps_compiled_loops_in_the_state(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")  # put back afterwards
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    _state_folder(tmp_path / "state")
    assert os.environ["NUMBA_CACHE_DIR"] == str(tmp_path / "state" / "compiled")
