"""Each member sees its own list, and nobody else's."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from starlette.routing import Route

from edgeveil.graph.nodes import NodeSet
from edgeveil.serve.application import Metrics, application
from edgeveil.serve.member import _asking, _member
from tests.serve.running import request

REFUSED = {"error": "this needs a valid token of a member"}


def test_a_member_gets_its_list_without_itself_and_its_friends(service, network):
    member = network.nodes[5]
    first = service.get(member=member)
    assert first.status == 200
    own = first.json["list"]
    assert own["member"] == member
    assert [line["rank"] for line in own["suggestions"]] == list(range(1, 11))
    names = {line["node"] for line in own["suggestions"]}
    assert member not in names
    assert not names & set(network.nodes.take(network.neighbours(5)))
    assert service.get(member=member).body == first.body


@pytest.mark.parametrize("path", ["/me/suggestions", "/me/protection", "/me/budget"])
@pytest.mark.parametrize("kind", ["none", "another scheme", "garbage", "expired"])
def test_without_a_valid_token_all_answers_are_one(service, network, path, kind):
    member = network.nodes[8]
    headers = {
        "none": {},
        "another scheme": {"Authorization": f"Basic {service.token(member)}"},
        "garbage": {"Authorization": "Bearer abc"},
        "expired": {"Authorization": f"Bearer {service.token(member, seconds=-3600)}"},
    }[kind]
    time.sleep(0.05)
    answer = service.get(path, headers=headers)
    assert answer.status == 401
    assert answer.json == REFUSED
    assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "path",
    [
        "/me/suggestions?member={other}",
        "/me/suggestions?sub={other}&node={other}",
        "/me//suggestions",
        "/me/suggestions/{other}",
        "/{other}/suggestions",
        "/me/../{other}/suggestions",
        "/me/%2e%2e/suggestions",
        "/me/suggestions%00{other}",
        "//me/suggestions",
        "/me/suggestions;{other}",
        "http://other/me/suggestions",
    ],
)
def test_no_path_or_query_leads_to_another_members_list(service, network, path):
    member, other = network.nodes[5], network.nodes[9]
    answer = service.get(path.format(other=other.replace(" ", "%20")), member)
    if answer.status == 200:
        assert answer.json["list"]["member"] == member
    else:
        assert answer.status in (400, 404, 405)
        assert other.encode() not in answer.body


@pytest.mark.parametrize(
    "name", ["X-Forwarded-User", "X-Member", "X-Original-URL", "Host", "Cookie"]
)
def test_no_header_names_the_member(service, network, name):
    member, other = network.nodes[5], network.nodes[9]
    token = {"Authorization": f"Bearer {service.token(member)}"}
    answer = service.get(headers={**token, name: other.encode()})
    assert answer.json["list"]["member"] == member


def test_two_tokens_in_one_request_are_no_way_to_another_list(service, network):
    mine, other = (service.token(network.nodes[i]) for i in (5, 9))
    text = f"GET /me/suggestions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {mine}\r\n"
    text += f"Authorization: Bearer {other}\r\nConnection: close\r\n\r\n"
    answer = talk(service.port, text.encode())
    assert network.nodes[9].encode() + b'","snapshot"' not in answer


def talk(port, data, seconds=5.0):
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as line:
        line.sendall(data)
        received = b""
        try:
            while more := line.recv(65536):
                received += more
        except (TimeoutError, ConnectionError):
            pass
        return received


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_member_list_refuses_other_methods(service, network, method):
    answer = service.get(member=network.nodes[5], method=method)
    assert answer.status == 405


def test_header_injection_stays_inside_of_its_line(service):
    answer = talk(
        service.port,
        b"GET /%0d%0aSet-Cookie:%20a=b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    )
    assert b"Set-Cookie" not in answer.split(b"\r\n\r\n")[0]
    assert b" 404 " in answer


def test_answers_carry_headers_that_keep_browsers_strict(service, network):
    for answer in (service.get("/"), service.get(member=network.nodes[5]), service.get("/nothing")):
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Server"] is None


def test_openapi_description_matches_the_routes(service, network):
    description = service.get("/openapi.json").json
    schemas, member = description["components"]["schemas"], network.nodes[14]
    responses = description["components"]["responses"]
    asked = {f"/me/{name}" for name in ("suggestions", "protection", "budget", "choices")}
    told = {f"/me/{name}" for name in ("not-interested", "interested", "suggest-me")}
    assert set(description["paths"]) == asked | told
    bodies = {"Named": {"node": network.nodes[15]}, "SuggestMe": {"suggest_me": True}}
    for path, methods in description["paths"].items():
        ((method, operation),) = methods.items()
        assert method == ("post" if path in told else "get")
        assert "parameters" not in operation
        body = None
        if method == "post":
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            body = bodies[schema["$ref"].rpartition("/")[2]]
            fits(body, schema, schemas)
        answer = operation["responses"]["200"]["content"]["application/json"]["schema"]
        got = service.get(path, member) if body is None else service.tell(path, member, body)
        fits(got.json, answer, schemas)
    service.tell("/me/interested", member, bodies["Named"])
    for name, member in (("NotYet", "somebody new"), ("NoToken", None)):
        schema = responses[name]["content"]["application/json"]["schema"]
        fits(service.get(member=member).json, schema, schemas)


def fits(value, schema, schemas):
    """Check a value against the few words of JSON Schema that the description uses."""
    if "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    kinds = [choice["type"] for choice in schema.get("anyOf", [schema])]
    python = {"object": dict, "array": list, "integer": int, "string": str, "boolean": bool}
    assert isinstance(value, tuple(python.get(kind, int | float) for kind in kinds))
    if isinstance(value, dict):
        assert set(value) == set(schema["properties"]) == set(schema["required"])
        for name, part in value.items():
            fits(part, schema["properties"][name], schemas)
    for part in value if isinstance(value, list) else ():
        fits(part, schema["items"], schemas)


@pytest.mark.parametrize("path", ["/me/suggestions/", "//me/suggestions", "/service.css/"])
def test_no_answer_sends_a_browser_to_whatever_host_was_named(service, path):
    for port in (service.port, service.curator_port):
        answer = request(port, path, headers={"Host": "evil.example"})
        assert answer.status == 404
        assert "Location" not in answer.headers
        assert b"evil" not in answer.body


def test_unknown_member_is_answered_as_fast_as_a_member(service):
    # Looking for similar names among thousands would take long, and everybody would wait.
    answers = [service.get(member="Alice Adamsn") for _ in range(3)]
    assert {answer.status for answer in answers} == {404}
    assert min(answer.seconds for answer in answers) < 0.1


def test_internal_error_is_neither_answered_nor_logged(caplog):
    async def broken(request):
        raise ValueError("Ann Example")

    async def ask():
        sent = []
        app = application([Route("/x", broken)], (), Metrics())
        scope = {"type": "http", "method": "GET", "path": "/x", "headers": [], "query_string": b""}

        async def send(message):
            sent.append(message)

        await app(scope, None, send)
        return sent

    with ThreadPoolExecutor(1) as pool:  # this thread may have a browser's loop in it
        start, body = pool.submit(asyncio.run, ask()).result()
    assert start["status"] == 500
    assert b"Example" not in body["body"]
    assert "ValueError" in caplog.text
    assert "Example" not in caplog.text


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("HEAD", "/", 200),
        ("POST", "/", 405),
        ("GET", "//", 404),
        ("GET", "/icon.svg/", 404),
        ("DELETE", "/nothing", 404),
    ],
)
def test_every_method_and_path_has_an_answer_with_all_headers(service, method, path, status):
    answer = request(service.port, path, method)
    assert answer.status == status
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert "Location" not in answer.headers
    assert (answer.body == b"") == (method == "HEAD")


def test_integer_ids_are_read_as_they_are_written():
    nodes = NodeSet.range(200)
    assert _member("7", nodes) == (7, 7)
    for odd in ("07", "+7", " 7", "7.0", "-0", "٧", "1e1", "200", "9" * 50):
        assert _member(odd, nodes) is None


def test_stored_list_of_another_member_is_refused():
    held = [b'{"member":"ann","snapshot":1}', b'{"member":"ann","snapshot":1}']
    published = SimpleNamespace(nodes=NodeSet.of(["ann", "annbob"]), get=held.__getitem__)
    source = SimpleNamespace(published=published)
    assert _asking(source, "ann").stored == held[0]
    assert _asking(source, "annbob").stored is None


def test_nothing_about_who_asked_is_logged(service, network):
    member = network.nodes[13]
    service.get(member=member)
    assert json.dumps(member) not in (service.folder / "log").read_text()
    metrics = service.curator("/metrics").body.decode()
    assert "edgeveil_requests_total" in metrics
    assert not any(node in metrics for node in network.nodes)
