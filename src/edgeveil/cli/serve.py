"""``edgeveil serve``."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from edgeveil.cli import options
from edgeveil.cli.options import Flag, LedgerAt, default
from edgeveil.cli.output import say
from edgeveil.errors import EdgeveilError, ParameterError
from edgeveil.serve.watched_files import own_folder

if TYPE_CHECKING:
    from edgeveil.ledger import Ledger
    from edgeveil.serve.served_series import SeriesLists
    from edgeveil.serve.server import Address
    from edgeveil.serve.tokens import TokenChecker

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

    def addresses(self) -> list[Address]:
        """The members' address, and the curator's if it is open."""
        from edgeveil.serve.server import Address

        if (self.certificate is None) != (self.private_key is None):
            raise ParameterError("HTTPS needs both: --certificate and --private-key")
        https = {"certificate": self.certificate, "key": self.private_key}
        curator = [] if self.curator is None else [Address.of(self.curator)]
        return [Address.of(self.at, **https, shared=True), *curator]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TokenOptions:
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
    k: options.ListLength = 20,
    label: str = "",
    shown: options.Suggestable = options.SUGGESTABLE,
    tokens: TokenOptions = TokenOptions(),  # noqa: B008  (frozen)
    sockets: Sockets = Sockets(),  # noqa: B008  (frozen)
    choices: Annotated[Path | None, default("choices.db in the state folder")] = None,
    state: Annotated[Path | None, default("beside the ledger: <ledger>.service")] = None,
    artifacts: Annotated[Path | None, default("beside the ledger")] = None,
    folder: Annotated[Path | None, default("beside the ledger")] = None,
    words: options.Nouns = None,
    trial: Flag = False,
    reading: options.GraphFile = options.GRAPH_FILE,
) -> None:
    """Give each member its own list over HTTP, and nobody else's.

    The lists are those of the label's series: edgeveil refresh makes them, and
    nobody is charged for asking.

    Example: edgeveil serve friends/ --ledger f.ledger --label friends --keys keys.json
    Try it first: edgeveil serve --trial

    Parameters
    ----------
    graph
        The private graph that a refresh from the curator's page takes.
    ledger
        Ledger of the series.
    k
        Length of a list.
    label
        The public name of the graph in the ledger.
    choices
        File with what members have asked for on their pages: whom they do not want on their lists,
        and not to be suggested. Instances for one series on one machine may name the same file.
    state
        Folder for copies of lists, members' choices and the curator's key.
    artifacts
        Folder of the released files; needed for a ledger in PostgreSQL.
    folder
        The folder of the series, as for `edgeveil refresh`.
    words
        What members and edges are called on the pages: accounts,payments.
    trial
        Serve the built-in network, with tokens for three members, until Ctrl-C.
    """
    _refuse_without_packages()
    if trial:
        with tempfile.TemporaryDirectory(prefix="edgeveil-trial-") as trials:
            _serve_trial(Path(trials), sockets, k)
        return
    if graph is None or ledger is None or tokens.keys is None:
        raise ParameterError(
            "GRAPH, --ledger and --keys are needed; `edgeveil serve --trial` needs none"
        )
    from edgeveil.cli.reading import read_and_say
    from edgeveil.ledger import Ledger
    from edgeveil.serve.choices import Choices
    from edgeveil.serve.rules import Rules
    from edgeveil.serve.served_series import SeriesLists
    from edgeveil.serve.tokens import TokenChecker

    members, *curator = addresses = sockets.addresses()
    opened = Ledger.open(ledger, artifacts=artifacts)
    place = _state_folder(_beside(opened) if state is None else state)
    checker = TokenChecker(tokens.keys, tokens.audience, tokens.issuer)
    read = partial(read_and_say, graph, reading, counts=False)
    lists = SeriesLists(
        *(read, opened, label, k, place, folder, words),
        choices=None if choices is None else Choices(choices),
        rules=Rules(*shown.files),
    )

    def started() -> None:
        say(f"Members: {members}")
        say(f"Curator: {curator[0] if curator else 'closed (--curator)'}")

    _serve(lists, checker, addresses, place, started)


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


def _serve(
    lists: SeriesLists,
    tokens: TokenChecker,
    addresses: list[Address],
    folder: Path,
    started: Callable[[], None],
) -> None:
    """Serve until told to stop; call `started` once all sockets are open."""
    from edgeveil.serve.application import Metrics
    from edgeveil.serve.curator import curator_app, curator_key
    from edgeveil.serve.member import member_app
    from edgeveil.serve.server import serve

    metrics = Metrics()
    apps = [member_app(lists, tokens, metrics, https=addresses[0].certificate is not None)]
    if len(addresses) > 1:
        apps.append(curator_app(lists, tokens, metrics, curator_key(folder / _KEY)))

    def begin() -> None:
        started()
        lists.start()

    try:
        serve(list(zip(addresses, apps, strict=True)), begin)
    finally:
        lists.stop()


def _serve_trial(folder: Path, sockets: Sockets, k: int) -> None:
    """The built-in network, tokens for three of its members, and the curator's page."""
    from edgeveil.cli.demo import named_network
    from edgeveil.ledger import Ledger
    from edgeveil.series import refresh
    from edgeveil.serve.served_series import SeriesLists
    from edgeveil.serve.server import Address
    from edgeveil.serve.tokens import TokenChecker, new_key, sign

    graph = named_network(seed=0)
    ledger = Ledger.create(folder / "trial.ledger", epsilon=_TRIAL_CAP)
    secret = new_key(folder / "keys.json")
    checker = TokenChecker(folder / "keys.json", "edgeveil")
    say("Making lists for everybody ...")
    refresh(graph, ledger=ledger, epsilon=1.0)
    lists = SeriesLists(lambda: graph, ledger, "", k, folder)
    lists.catch_up()  # whoever opens a page at once sees a list
    beside = str(Address.of(sockets.at).port + 1)
    members, curator = addresses = replace(sockets, curator=beside).addresses()
    people = graph.nodes.take(range(0, graph.n_nodes, graph.n_nodes // _TRIAL_MEMBERS))

    def started() -> None:
        say("A network of generated people. Open these pages in a browser; Ctrl-C ends all.")
        for person in people[:_TRIAL_MEMBERS]:
            say(f"{person}: {members}/#token={sign(str(person), secret, 'edgeveil')}")
        say(f"The curator: {curator}/#key={(folder / _KEY).read_text().strip()}")

    _serve(lists, checker, addresses, folder, started)
