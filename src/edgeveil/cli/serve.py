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
from edgeveil.serve.watched_files import own_folder

if TYPE_CHECKING:
    from edgeveil.graph.graph import Graph
    from edgeveil.ledger import Ledger
    from edgeveil.serve.making import Making
    from edgeveil.serve.served_series import SeriesLists
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
    folder: Annotated[Path | None, default("beside the ledger")] = None,
    ahead: Flag = False,
    trial: Flag = False,
    knows_followers: Flag = False,
    reading: options.GraphFile = options.GRAPH_FILE,
) -> None:
    """Give each member its own list over HTTP, and nobody else's.

    Where the lists of the label are a series (edgeveil refresh), these are
    served, and nobody is charged for asking. Without one, lists are made and
    charged one by one, at --epsilon.

    Example: edgeveil serve friends/ --ledger f.ledger --label friends --keys keys.json
    Try it first: edgeveil serve --trial

    Parameters
    ----------
    graph
        The private graph; a folder made by `edgeveil convert` opens in milliseconds.
    ledger
        Budget to charge; made by `edgeveil ledger create`.
    epsilon
        Without a series: privacy loss of one list. A member gets one list for each snapshot.
    k
        Length of a list.
    label
        The public name of the graph in the ledger.
    state
        Folder for copies of lists and the curator's key.
    artifacts
        Folder of the released files; needed for a ledger in PostgreSQL.
    folder
        The folder of the series, as for `edgeveil refresh`.
    ahead
        Without a series: make and charge the lists of all members at once, in every snapshot, not
        when members first ask.
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
    if graph is None or ledger is None or tokens.keys is None:
        raise ParameterError(
            "GRAPH, --ledger and --keys are needed; `edgeveil serve --trial` needs none"
        )
    from edgeveil.ledger import Ledger
    from edgeveil.series import is_series
    from edgeveil.serve.making import Making, Offer
    from edgeveil.serve.served_series import SeriesLists
    from edgeveil.serve.tokens import Tokens as Checker

    opened = Ledger.open(ledger, artifacts=artifacts)
    of_series = is_series(opened, label)
    if not of_series:
        epsilon = _price_of_a_list(opened, label, folder, epsilon)
    place = _state_folder(_beside(opened) if state is None else state)
    checker = Checker(tokens.keys, tokens.audience, tokens.issuer)
    read = _reader(graph, reading)
    source: Making | SeriesLists
    if of_series:
        source = SeriesLists(read, opened, label, k, place, folder)
        lists = source.mechanism
        if epsilon not in (None, lists.epsilon) or knows_followers > lists.knows_followers:
            raise ParameterError(
                f"the lists of {label or 'this graph'} are a series with epsilon "
                f"{lists.epsilon:g}: leave --epsilon and --knows-followers out"
            )
    else:
        assert epsilon is not None
        offer = Offer(epsilon, k=k, label=label, knows_followers=knows_followers, ahead=ahead)
        source = Making(read, opened, offer, place)

    def started(members: str, curator: str) -> None:
        say(f"Members: {members}")
        say(f"Curator: {curator or 'closed (--curator)'}")

    _serve(source, checker, sockets, place, started)


def _price_of_a_list(
    ledger: Ledger, label: str, folder: Path | None, epsilon: float | None
) -> float:
    """The epsilon of lists that are made one by one; refuse if the label has a series."""
    from edgeveil.series.campaign import series_folder

    renewed = ledger.fingerprint(label) is None and ledger.snapshot(label) > 1
    if renewed and (series_folder(ledger, label, folder) / "series.json").exists():
        raise ParameterError(
            f"the series of {label or 'this graph'} was renewed: edgeveil refresh starts it. "
            "Lists that are charged one by one need another label"
        )
    if epsilon is None:
        raise ParameterError(
            f"{label or 'this graph'} has no series yet: edgeveil refresh makes one. For lists "
            "that are charged one by one, give --epsilon"
        )
    if epsilon > ledger.epsilon:
        raise ParameterError(f"--epsilon {epsilon:g} is above the ledger's cap, {ledger.epsilon:g}")
    return epsilon


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
    source: Making | SeriesLists,
    tokens: Checker,
    sockets: Sockets,
    folder: Path,
    started: Callable[[str, str], None],
) -> None:
    """Serve until told to stop; call `started` with both addresses ("" for a closed one)."""
    from edgeveil.serve.application import Metrics
    from edgeveil.serve.curator import curator_app, curator_key
    from edgeveil.serve.member import member_app
    from edgeveil.serve.server import Address, serve

    if (sockets.certificate is None) != (sockets.private_key is None):
        raise ParameterError("HTTPS needs both: --certificate and --private-key")
    address = Address.of(
        sockets.at, certificate=sockets.certificate, key=sockets.private_key, shared=True
    )
    metrics, https = Metrics(), sockets.certificate is not None
    apps = [(address, member_app(source, tokens, metrics, pad=sockets.pad, https=https))]
    if sockets.curator is not None:
        key = curator_key(folder / _KEY)
        apps.append((Address.of(sockets.curator), curator_app(source, tokens, metrics, key)))

    def begin() -> None:
        started(str(address), str(apps[1][0]) if apps[1:] else "")
        source.start()

    try:
        serve(apps, begin)
    finally:
        source.stop()


def _serve_trial(folder: Path, sockets: Sockets, k: int) -> None:
    """The built-in network, tokens for three of its members, and the curator's page."""
    from edgeveil.cli.demo import named_network
    from edgeveil.ledger import Ledger
    from edgeveil.series import refresh
    from edgeveil.serve.served_series import SeriesLists
    from edgeveil.serve.server import Address
    from edgeveil.serve.tokens import Tokens as Checker
    from edgeveil.serve.tokens import new_key, sign

    graph = named_network(seed=0)
    ledger = Ledger.create(folder / "trial.ledger", epsilon=_TRIAL_CAP)
    secret = new_key(folder / "keys.json")
    checker = Checker(folder / "keys.json", "edgeveil")
    say("Making lists for everybody ...")
    refresh(graph, ledger=ledger, epsilon=1.0)
    source = SeriesLists(lambda: graph, ledger, "", k, folder)
    beside = str(Address.of(sockets.at).port + 1)
    people = graph.nodes.take(range(0, graph.n_nodes, graph.n_nodes // _TRIAL_MEMBERS))

    def started(members: str, curator: str) -> None:
        say("A network of generated people. Open these pages in a browser; Ctrl-C ends all.")
        for person in people[:_TRIAL_MEMBERS]:
            say(f"{person}: {members}/#token={sign(str(person), secret, 'edgeveil')}")
        say(f"The curator: {curator}/#key={(folder / _KEY).read_text().strip()}")

    _serve(source, checker, replace(sockets, curator=beside), folder, started)
