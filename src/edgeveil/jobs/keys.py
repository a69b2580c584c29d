"""How a ledger identifies a computation, and the noise that belongs to it alone.

The description (`describe`) has mechanism, parameters, guarantee, and the source of a mechanism
from outside of the package. Our own code is not part of it, or an upgrade would charge everybody
again. Only the same code (`code_of`) may finish a batch that was begun. Comments and docstrings do
not count.

If two computations shared noise, the difference of their results would reveal private numbers. So
`noise_for` derives it from a batch's secret and from all that is computed: whatever is restored,
copied or edited, the same secret gives other noise for another graph. Nothing else in the package
makes noise from a stored secret.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import sys
from dataclasses import asdict, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from edgeveil._internal.loops import digest_of_files, loop_files, loops_changed
from edgeveil.errors import EdgeveilError, ParameterError
from edgeveil.estimate.public import PublicData
from edgeveil.graph.graph import Graph
from edgeveil.mechanisms.base import Mechanism
from edgeveil.mechanisms.requirements import is_ours
from edgeveil.privacy.noise import NoiseSource

# Modules that released values depend on; not readers of files, commands, reports, audits.
_MAKES_VALUES = (
    *("estimate", "flow", "mechanisms", "privacy", "graph/graph.py", "graph/nodes.py"),
    *("_internal/flat_rows.py", "jobs/tasks.py", "series"),
)


def noise_for(
    secret: bytes,
    what: Literal["shared", "rows"],
    mechanism: Mechanism,
    graph: Graph,
    *,
    released: str = "",
) -> NoiseSource:
    """The noise of one batch: a function of its secret and of everything that is computed with it.

    The same data gives the same noise, so interrupted work goes on with the same result.

    Parameters
    ----------
    secret : bytes
        The secret of the batch.
    what : "shared" or "rows"
        The shared statistic (bound to its very numbers as well, see `shared_numbers`), or rows.
    mechanism : Mechanism
        With its parameters and its code.
    graph : Graph
        With its nodes, directions and `first_seen`.
    released : str
        For rows: the digest of the noised shared statistic that they are computed with.
    """
    parts = (what, graph.fingerprint, _identity(mechanism), code_of(mechanism), released)
    return NoiseSource.from_secret(secret).derive(*parts)


def _identity(mechanism: Mechanism) -> str:
    """Name and parameters as text; arrays by their digest."""

    def digest(value: Any) -> Any:
        array = np.ascontiguousarray(value)
        return [array.dtype.str, array.shape, hashlib.sha256(array.data).hexdigest()]

    parameters = {
        name: digest(value) if isinstance(value, np.ndarray) else value
        for name, value in parameters_of(mechanism).items()
    }
    return json.dumps([mechanism.name, parameters], sort_keys=True)


def parameters_of(mechanism: Mechanism) -> dict[str, Any]:
    """The mechanism's public parameters as plain data; public data of the nodes as a digest."""
    return {f.name: _plain(getattr(mechanism, f.name)) for f in fields(mechanism)}


def _plain(value: Any) -> Any:
    if isinstance(value, PublicData):
        return {"sha256": value.digest, **value.summary}
    if isinstance(value, np.generic):
        return value.item()
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def parameters_text(mechanism: Mechanism) -> str:
    """The parameters as JSON, for a ledger; ParameterError for one that it cannot record."""
    try:
        return json.dumps(parameters_of(mechanism))
    except TypeError as error:
        raise ParameterError(
            f"a ledger records the parameters of {mechanism.name}: they must be numbers, text, "
            f"tuples of them, or public data of the nodes ({error})"
        ) from None


def describe(mechanism: Mechanism) -> str:
    """What a mechanism computes, as text. The graph is not part of it.

    Otherwise the same call would give the stored rows while the graph is the same, and new rows
    as soon as one edge has changed, which would reveal the change.
    """
    claim = mechanism.guarantee(1)
    described = {
        "mechanism": mechanism.name,
        # 1 and 1.0 are the same parameter
        "parameters": {
            name: float(value) if type(value) is int and abs(value) < 2**53 else value
            for name, value in parameters_of(mechanism).items()
        },
        "guarantee": [
            *(claim.epsilon, claim.model, claim.collusion, claim.shared_epsilon, claim.known_edges)
        ],
        "code": [_class_digest(kind) for kind in _classes(mechanism) if not is_ours(kind)],
    }
    return json.dumps(described, sort_keys=True)


def _classes(mechanism: Mechanism) -> tuple[type, ...]:
    return type(mechanism).__mro__[:-1]


def code_of(mechanism: Mechanism) -> str:
    """SHA-256 of the code that computes a mechanism's values: edgeveil's and its own classes."""
    parts = [_our_code(), *map(_class_digest, _classes(mechanism))]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()


@cache
def _our_code() -> str:
    """Digest of the modules that make values and of all compiled loops, which may be inlined."""
    if loops_changed():  # some loops may be loaded from before the change, others from after it
        raise EdgeveilError(
            "edgeveil's own files have changed since this process began: restart it"
        )
    folder = Path(__file__).parents[1]
    places = [folder / name for name in _MAKES_VALUES]
    files = {
        file for place in places for file in ([place] if place.is_file() else place.rglob("*.py"))
    }
    return digest_of_files({*files, *loop_files(folder)}, folder, _meaning)


@cache
def _class_digest(kind: type) -> str:
    """Digest of a class: its module, its name and the source of its whole module.

    Raises
    ------
    ParameterError
        If there is no file, because it was defined at a prompt: its code could change unnoticed,
        under a secret that draws the same noise again.
    """
    digest = hashlib.sha256(f"{kind.__module__}:{kind.__qualname__}".encode())
    if not is_ours(kind):
        module = sys.modules.get(kind.__module__)
        try:
            digest.update(_meaning(inspect.getsource(module or kind)))
        except (OSError, TypeError, SyntaxError):
            raise ParameterError(
                f"the source of {kind.__qualname__} cannot be read: a ledger charges only for "
                "mechanisms whose class is in a file; put it into a module and import it"
            ) from None
    return digest.hexdigest()


def _meaning(source: str | bytes) -> bytes:
    """Python source without comments, formatting and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                value.value = ""
    return ast.dump(tree).encode()
