"""``edgeveil serve``."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from edgeveil.cli import options
from edgeveil.cli.options import Flag, LedgerAt, default
from edgeveil.cli.output import say
from edgeveil.errors import EdgeveilError, ParameterError
from edgeveil.serve.files import own_folder

if TYPE_CHECKING:
    from edgeveil.graph import Graph
    from edgeveil.ledger import Ledger
    from edgeveil.serve.making import Making
    from edgeveil.serve.tokens import Tokens as Checker

_TRIAL_MEMBERS = 3
_TRIAL_CAP = 2.0
_KEY = "curator.key"


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Sockets:
    """Addresses for members and for the curator."""

    at: str = "127.0.0.1:8080"
    """Address for members: host:port, or unix:path behind a proxy."""
    certificate: Annotated[Path | None, default("plain HTTP")] = None
    """For HTTPS: the certificate, with its chain (PEM)."""
    private_key: Annotated[Path | None, default("plain HTTP")] = None
    """For HTTPS: the certificate's private key (PEM)."""
    curator: Annotated[str | None, default("closed")] = None
    """Address for the curator: 127.0.0.1:8081 or unix:path. The key is in the state folder."""
    pad: float = 1.0
    """New lists are delayed to a multiple of this many seconds, to hide computing time."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Tokens:
    """Which tokens are accepted."""

    keys: Annotated[Path | None, default("needed, but for --trial")] = None
    """JWKS file with the keys that members' tokens are signed with (EdDSA, RS256, HS256)."""
    audience: str = "edgeveil"
    """What a token's "aud" must be."""
    issuer: Annotated[str | None, default("not looked at")] = None
    """What a token's "iss" must be."""


def serve(
    graph: Path | None = None,
    /,
    *,
    ledger: Annotated[LedgerAt | None, default("needed, but for --trial")] = None,
    epsilon: float | None = None,
    k: options.Length = 20,
    label: str = "",
    tokens: Tokens = Tokens(),  # noqa: B008  (frozen)
    sockets: Sockets = Sockets(),  # noqa: B008  (frozen)
    state: Annotated[Path | None, default("beside the ledger: <ledger>.service")] = None,
    artifacts: Annotated[Path | None, default("beside the ledger")] = None,
    ahead: Flag = False,
    trial: Flag = False,
    knows_followers: Flag = False,
    reading: options.GraphFile = options.GRAPH_FILE,
) -> None:
    """Give each member its own list over HTTP, and nobody else's.

    The mechanism is always Suggest.

    Example: edgeveil serve friends/ --ledger friends.ledger --epsilon 0.5 --keys keys.json
    Try it first: edgeveil serve --trial

    Parameters
    ----------
    graph
        The private graph; a folder made by `edgeveil convert` opens in milliseconds.
    ledger
        Budget to charge; made by `edgeveil ledger create`.
    epsilon
        Privacy loss of one list. A member gets one list for each snapshot.
    k
        Length of a list.
    label
        The public name of the graph in the ledger.
    state
        Folder for copies of lists and the curator's key.
    artifacts
        Folder of the released files; needed for a ledger in PostgreSQL.
    ahead
        Make and charge the lists of all members at once, in every snapshot, not when members first
        ask.
    trial
        Serve the built-in network, with tokens for three members, until Ctrl-C.
    knows_followers
        With --directed keep: every member knows who follows it.
    """
    _refuse_without_packages()
    if not sockets.pad > 0:
        raise ParameterError(f"pad must be a positive number of seconds, got {sockets.pad}")
    if trial:
        with tempfile.TemporaryDirectory(prefix="edgeveil-trial-") as trials:
            _serve_trial(Path(trials), sockets, k)
        return
    if graph is None or ledger is None or epsilon is None or tokens.keys is None:
        raise ParameterError(
            "GRAPH, --ledger, --epsilon and --keys are needed; `edgeveil serve --trial` needs none"
        )
    from edgeveil.ledger import Ledger
    from edgeveil.series import is_series
    from edgeveil.serve.making import Making, Offer
    from edgeveil.serve.tokens import Tokens as Checker

    opened = Ledger.open(ledger, artifacts=artifacts)
    if is_series(opened, label):
        raise ParameterError(
            f"the lists of {label or 'this graph'} are a series, which the service does not serve "
            "yet: edgeveil refresh --per-member writes them, or serve another label"
        )
    if epsilon > opened.epsilon:
        raise ParameterError(f"--epsilon {epsilon:g} is above the ledger's cap, {opened.epsilon:g}")
    folder = _state_folder(_beside(opened) if state is None else state)
    checker = Checker(tokens.keys, tokens.audience, tokens.issuer)
    offer = Offer(epsilon=epsilon, k=k, label=label, knows_followers=knows_followers, ahead=ahead)
    making = Making(_reader(graph, reading), opened, offer, folder)

    def started(members: str, curator: str) -> None:
        say(f"Members: {members}")
        say(f"Curator: {curator or 'closed (--curator)'}")

    _serve(making, checker, sockets, folder, started)


def _refuse_without_packages() -> None:
    try:
        import edgeveil.serve.curator
        import edgeveil.serve.member
        import edgeveil.serve.server  # noqa: F401
    except ModuleNotFoundError as missing:
        raise EdgeveilError(
            f"the service needs {missing.name}: pip install 'edgeveil[serve]'"
        ) from None


def _state_folder(folder: Path) -> Path:
    """A folder that nobody else can put a key, lists or compiled code into."""
    own_folder(folder)
    if not os.access(Path(__file__).parent, os.W_OK):
        # Compiled loops are kept beside the package or in a home; a service may have neither.
        os.environ.setdefault("NUMBA_CACHE_DIR", str(own_folder(folder / "compiled")))
    return folder


def _beside(ledger: Ledger) -> Path:
    if "://" in ledger.location:
        raise ParameterError("a ledger in PostgreSQL needs --state: a folder for copies of lists")
    return Path(f"{ledger.location}.service")


def _reader(path: Path, reading: options.GraphFile) -> Callable[[], Graph]:
    from edgeveil.cli.reading import read_and_say

    return lambda: read_and_say(path, reading, counts=False)


def _serve(
    making: Making,
    tokens: Checker,
    sockets: Sockets,
    folder: Path,
    started: Callable[[str, str], None],
) -> None:
    """Serve until told to stop; `started` is told both addresses, "" for one that is closed."""
    from edgeveil.serve.app import Metrics
    from edgeveil.serve.curator import curator_app, curator_key
    from edgeveil.serve.member import member_app
    from edgeveil.serve.server import Address, serve

    if (sockets.certificate is None) != (sockets.private_key is None):
        raise ParameterError("HTTPS needs both: --certificate and --private-key")
    address = Address.of(
        sockets.at, certificate=sockets.certificate, key=sockets.private_key, shared=True
    )
    metrics, https = Metrics(), sockets.certificate is not None
    apps = [(address, member_app(making, tokens, metrics, pad=sockets.pad, https=https))]
    if sockets.curator is not None:
        key = curator_key(folder / _KEY)
        apps.append((Address.of(sockets.curator), curator_app(making, tokens, metrics, key)))

    def begin() -> None:
        started(str(address), str(apps[1][0]) if apps[1:] else "")
        making.start()

    try:
        serve(apps, begin)
    finally:
        making.stop()


def _serve_trial(folder: Path, sockets: Sockets, k: int) -> None:
    """The built-in network, tokens for three of its members, and the curator's page."""
    from edgeveil.cli.demo import named_network
    from edgeveil.ledger import Ledger
    from edgeveil.serve.making import Making, Offer
    from edgeveil.serve.server import Address
    from edgeveil.serve.tokens import Tokens as Checker
    from edgeveil.serve.tokens import new_key, sign

    graph = named_network(seed=0)
    ledger = Ledger.create(folder / "trial.ledger", epsilon=_TRIAL_CAP)
    secret = new_key(folder / "keys.json")
    checker = Checker(folder / "keys.json", "edgeveil")
    making = Making(lambda: graph, ledger, Offer(epsilon=1.0, k=k), folder)
    beside = str(Address.of(sockets.at).port + 1)
    people = graph.nodes.take(range(0, graph.n_nodes, graph.n_nodes // _TRIAL_MEMBERS))

    def started(members: str, curator: str) -> None:
        say("A network of generated people. Open these pages in a browser; Ctrl-C ends all.")
        for person in people[:_TRIAL_MEMBERS]:
            say(f"{person}: {members}/#token={sign(str(person), secret, 'edgeveil')}")
        say(f"The curator: {curator}/#key={(folder / _KEY).read_text().strip()}")

    _serve(making, checker, replace(sockets, curator=beside), folder, started)
