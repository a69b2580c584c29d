"""The configuration of nginx in docs/service.md: it parses, and it stops what it says it stops.

With nginx on the PATH the real program runs it, in front of a service on a Unix socket.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import shutil
import socket
import ssl
import subprocess
import time
from pathlib import Path

import pytest

from tests.serve.running import Service, free_port, request
from tests.serve.test_sockets import certificate

PAGE = Path(__file__).parents[2] / "docs" / "service.md"
NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
needs_nginx = pytest.mark.skipif(NGINX is None, reason="no nginx here: apt install nginx")


def configuration():
    (block,) = re.findall(r"```nginx\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return block


def directives(text):
    """Names and arguments of all directives, with the names of the blocks that they are in."""
    text = re.sub(r"#.*", "", text)
    lines, inside, words = [], [], []
    for token in re.findall(r'"[^"]*"|[{};]|[^\s{};"]+', text):
        if token == "{":
            inside.append(words[0])
            lines.append((tuple(inside[:-1]), *words))
        elif token == "}":
            assert not words, f"no semicolon after {words}"
            inside.pop()
            continue
        elif token == ";":
            lines.append((tuple(inside), *words))
        else:
            words.append(token)
            continue
        words = []
    assert not inside
    assert not words
    return lines


def test_nginx_configuration_parses_and_sets_all_limits():
    settings = {(inside, name): rest for inside, name, *rest in directives(configuration())}
    server = {name: rest for (inside, name), rest in settings.items() if inside == ("server",)}
    assert server["access_log"] == server["gzip"] == ["off"]
    bounds = "client_max_body_size large_client_header_buffers client_header_timeout "
    bounds += "client_body_timeout send_timeout limit_conn limit_req"
    assert set(bounds.split()) <= set(server)
    zones = {rest[-2 if "rate" in rest[-1] else -1] for (_, name), rest in settings.items()
             if name in ("limit_req_zone", "limit_conn_zone")}  # fmt: skip
    used = {f"zone={server['limit_conn'][0]}:10m", f"{server['limit_req'][0]}:10m"}
    assert used == zones
    assert settings[("server", "location"), "proxy_pass"] == ["http://edgeveil"]


@pytest.fixture(scope="module")
def proxy(network, tmp_path_factory):
    """A service on a Unix socket, and nginx before it as the page says."""
    folder = tmp_path_factory.mktemp("proxy")
    chain, key = certificate(folder)
    options = ["--at", f"unix:{folder}/members"]
    running = Service(folder, network, options=options).start()
    running.port, running.chain = free_port(), chain
    text = configuration()
    for old, new in (
        ("/run/edgeveil/members", f"{folder}/members"),
        ("listen 443 ssl", f"listen 127.0.0.1:{running.port} ssl"),
        ("/etc/ssl/chain.pem", str(chain)),
        ("/etc/ssl/key.pem", str(key)),
        ("/var/log/nginx/edgeveil.log", f"{folder}/nginx.log"),
        ("client_header_timeout 5s", "client_header_timeout 1s"),  # the tests wait for it
    ):
        assert old in text
        text = text.replace(old, new)
    temporary = "".join(
        f"{name}_temp_path {folder}/{name};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root root;\n" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(
        f"{user}daemon off;\npid {folder}/pid;\nerror_log {folder}/nginx.log;\n"
        f"events {{ worker_connections 500; }}\nhttp {{\n{temporary}{text}}}\n"
    )
    words = [NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf")]
    checked = subprocess.run([*words, "-t"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    nginx = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    try:
        running.wait_for_members(certificate=chain)
        running.wait_for_list(network.nodes[0], certificate=chain)
        yield running
    finally:
        nginx.terminate()
        nginx.wait(timeout=30)
        running.stop()


@contextlib.contextmanager
def connected(proxy):
    trusted = ssl.create_default_context(cafile=proxy.chain)
    with (
        socket.create_connection(("127.0.0.1", proxy.port), timeout=50) as line,
        trusted.wrap_socket(line, server_hostname="localhost") as secure,
    ):
        yield secure


@needs_nginx
def test_a_member_gets_its_list_through_the_proxy_in_one_length(proxy, network):
    answers = [proxy.get(member=network.nodes[i], certificate=proxy.chain) for i in (1, 2)]
    assert [answer.status for answer in answers] == [200, 200]
    assert len({len(answer.body) for answer in answers}) == 1
    assert answers[0].json["list"]["member"] == network.nodes[1]
    assert answers[0].headers["Strict-Transport-Security"]
    assert answers[0].headers["Content-Encoding"] is None
    asked = {"Accept-Encoding": "gzip"}
    token = {"Authorization": f"Bearer {proxy.token(network.nodes[1])}"}
    packed = proxy.get(headers={**asked, **token}, certificate=proxy.chain)
    assert packed.headers["Content-Encoding"] is None


@needs_nginx
def test_large_bodies_and_heads_do_not_reach_the_service(proxy):
    large = request(
        proxy.port, "/me/suggestions", "POST", body=b"x" * 5_000, certificate=proxy.chain
    )
    assert large.status == 413
    head = request(proxy.port, "/", headers={"X": "a" * 20_000}, certificate=proxy.chain)
    assert head.status in (400, 431, 494)


@needs_nginx
def test_silent_and_slow_clients_are_sent_away(proxy):
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=50) as silent:
        assert silent.recv(100) == b""
    with connected(proxy) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nX: ")
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            assert not slow.recv(100).startswith(b"HTTP/1.1 200")
    assert time.monotonic() - began < 55  # 1 s each; without the page's line, nginx waits for 60


@needs_nginx
def test_one_address_is_limited_in_rate_and_connections(proxy, network):
    member = network.nodes[1]
    trusted = ssl.create_default_context(cafile=proxy.chain)
    line = http.client.HTTPSConnection("localhost", proxy.port, timeout=120, context=trusted)
    statuses, headers = set(), {"Authorization": f"Bearer {proxy.token(member)}"}
    with contextlib.closing(line):
        for _ in range(1000):  # 10 a second and 40 more are allowed
            line.request("GET", "/me/protection", headers=headers)
            answer = line.getresponse()
            answer.read()
            statuses.add(answer.status)
            if 429 in statuses:
                break
    assert statuses == {200, 429}
    time.sleep(0.3)
    assert proxy.get("/me/protection", member, certificate=proxy.chain).status == 200


@needs_nginx
def test_nothing_about_who_asked_is_logged_by_the_proxy(proxy, network):
    proxy.get(member=network.nodes[1], certificate=proxy.chain)
    log = (proxy.folder / "nginx.log").read_text()
    assert "127.0.0.1" not in log
    assert "Bearer" not in log
