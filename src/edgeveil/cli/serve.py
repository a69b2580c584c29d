"""``edgeveil serve``."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from edgeveil.cli.options import FOLLOWS_FILE, Flag, FollowsFile, LedgerAt, default
from edgeveil.cli.output import say
from edgeveil.errors import EdgeveilError, ParameterError

if TYPE_CHECKING:
    from edgeveil.graph import Graph
    from edgeveil.ledger import Ledger
    from edgeveil.serve.making import Making

__all__ = ["serve"]

_TRIAL_MEMBERS = 3
_TRIAL_CAP = 10.0


def serve(
    graph: Path | None = None,
    /,
    *,
    ledger: LedgerAt | None = None,
    epsilon: float | None = None,
    top: int = 20,
    label: str = "",
    keys: Path | None = None,
    audience: str = "edgeveil",
    issuer: str | None = None,
    at: str = "127.0.0.1:8080",
    certificate: Path | None = None,
    private_key: Path | None = None,
    curator: Annotated[str | None, default("closed")] = None,
    state: Annotated[Path | None, default("beside the ledger: <ledger>.service")] = None,
    artifacts: Path | None = None,
    ahead: Flag = False,
    pad: float = 1.0,
    knows_followers: Flag = False,
    trial: Flag = False,
    reading: FollowsFile = FOLLOWS_FILE,
) -> None:
    """Give each member its own list over HTTP, and nobody else's.

    Example: edgeveil serve friends/ --ledger friends.ledger --epsilon 0.5 --keys keys.json
    Try it first: edgeveil serve --trial

    Parameters
    ----------
    graph
        The private graph; a folder made by `edgeveil convert` opens in milliseconds.
    ledger
        Budget that pays; made by `edgeveil ledger create`.
    epsilon
        Privacy loss of one list. A member gets one list for each snapshot.
    top
        Places of a list.
    label
        The public name of the graph in the ledger.
    keys
        JWKS file with the keys that members' tokens are signed with (EdDSA, RS256, HS256).
    audience
        What a token's "aud" must be.
    issuer
        What a token's "iss" must be; not looked at if left out.
    at
        Where members come: host:port, or unix:path behind a proxy.
    certificate
        For HTTPS: the certificate, with its chain (PEM).
    private_key
        For HTTPS: the certificate's private key (PEM).
    curator
        Where the curator comes: 127.0.0.1:8081 or unix:path, with the key in the state's folder.
    state
        Folder for copies of lists and the curator's key.
    artifacts
        Folder of the released files, for a ledger in PostgreSQL.
    ahead
        Make the lists of all members at once, not when they first ask.
    pad
        A first list is given a multiple of so many seconds after it was asked for: how long it
        took depends on edges.
    knows_followers
        Directed: every member knows who follows it.
    trial
        Serve the built-in network, with tokens for three members, until Ctrl-C.
    """
    run = _loaded()
    if not pad > 0:
        raise ParameterError(f"pad must be a positive number of seconds, got {pad}")
    if (certificate is None) != (private_key is None):
        raise ParameterError("HTTPS needs both: --certificate and --private-key")
    place = run.Place.of(at, certificate=certificate, key=private_key)
    if trial:
        with tempfile.TemporaryDirectory(prefix="edgeveil-trial-") as folder:
            _serve_trial(run, Path(folder), place, pad=pad, top=top)
        return
    for name, value in (("GRAPH", graph), ("--ledger", ledger), ("--epsilon", epsilon)):
        if value is None:
            raise ParameterError(f"{name} is needed; `edgeveil serve --trial` needs nothing")
    if keys is None:
        raise ParameterError("--keys is needed: the JWKS file that members' tokens are signed with")
    assert graph is not None
    assert ledger is not None
    assert epsilon is not None
    from edgeveil.ledger import Ledger

    offer = run.Offer(epsilon=epsilon, places=top, label=label, knows_followers=knows_followers)
    opened = Ledger.open(ledger, artifacts=artifacts)
    folder = state or _beside(opened)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    tokens = run.Tokens(keys, audience, issuer)
    making = run.Making(_reader(graph, reading), opened, offer, folder)
    if ahead:
        making.make_ahead()
    closed = curator is None
    apps = _apps(run, making, tokens, place, curator, folder / "curator.key", pad)

    def started() -> None:
        say(f"Members: {place.address}")
        say("Curator: closed (--curator)" if closed else f"Curator: {apps[1][0].address}")

    try:
        run.serve(apps, started)
    finally:
        making.stop()


def _loaded() -> Any:
    """The service's modules; they need packages of their own."""
    try:
        from edgeveil.serve import run
    except ModuleNotFoundError as missing:
        raise EdgeveilError(
            f"the service needs {missing.name}: pip install 'edgeveil[serve]'"
        ) from None
    return run


def _beside(ledger: Ledger) -> Path:
    if "://" in ledger.location:
        raise ParameterError("a ledger in PostgreSQL needs --state: a folder for copies of lists")
    return Path(f"{ledger.location}.service")


def _reader(path: Path, reading: FollowsFile) -> Callable[[], Graph]:
    from edgeveil.cli.reading import read_and_say

    return lambda: read_and_say(path, reading, counts=False)


def _apps(
    run: Any,
    making: Making,
    tokens: Any,
    place: Any,
    curator: str | None,
    key: Path,
    pad: float,
) -> list[tuple[Any, Any]]:
    metrics = run.Metrics()
    https = place.certificate is not None
    apps = [(place, run.member_app(making, tokens, metrics, pad=pad, https=https))]
    if curator is not None:
        app = run.curator_app(making, tokens, metrics, run.curator_key(key))
        apps.append((run.Place.of(curator), app))
    return apps


def _serve_trial(run: Any, folder: Path, place: Any, *, pad: float, top: int) -> None:
    """The built-in network, tokens for three of its members, and the curator's page."""
    from edgeveil.cli.demo import named_network
    from edgeveil.ledger import Ledger

    graph = named_network(seed=0)
    ledger = Ledger.create(folder / "trial.ledger", epsilon=_TRIAL_CAP)
    offer = run.Offer(epsilon=1.0, places=top)
    secret = run.new_key(folder / "keys.json")
    tokens = run.Tokens(folder / "keys.json", "edgeveil")
    making = run.Making(lambda: graph, ledger, offer, folder)
    port = place.port + 1 if place.path is None else 8081
    key = folder / "curator.key"
    apps = _apps(run, making, tokens, place, f"127.0.0.1:{port}", key, pad)
    members = graph.nodes.take(range(0, graph.n_nodes, graph.n_nodes // _TRIAL_MEMBERS))

    def started() -> None:
        say("A network of generated people. Open these pages in a browser; Ctrl-C ends all.")
        for member in members[:_TRIAL_MEMBERS]:
            token = run.sign(str(member), secret, "edgeveil")
            say(f"{member}: {place.address}/#token={token}")
        say(f"The curator: {apps[1][0].address}/#key={run.curator_key(key)}")

    try:
        run.serve(apps, started)
    finally:
        making.stop()
