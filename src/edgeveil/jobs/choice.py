"""Which mechanism a call uses: the one that is given, one by its name, or the recommended one.

Of a graph only what is public counts: its number of nodes, and whether it is directed.
"""

from __future__ import annotations

import math
import re
from dataclasses import MISSING, fields, replace
from typing import Any, Literal

from edgeveil._internal.checks import check_choice
from edgeveil._internal.paper_names import refuse_paper_names
from edgeveil._internal.words import did_you_mean
from edgeveil.errors import ParameterError
from edgeveil.graph.graph import Graph
from edgeveil.mechanisms import DATA_MECHANISMS, MECHANISMS
from edgeveil.mechanisms.aggregation import Aggregation
from edgeveil.mechanisms.base import Mechanism, check_model
from edgeveil.mechanisms.edge_flipping import EdgeFlipping
from edgeveil.mechanisms.member_lists import Suggest
from edgeveil.mechanisms.own_list import OwnListEmbedding
from edgeveil.mechanisms.requirements import check_mechanism
from edgeveil.mechanisms.two_hop import DegreePrior, TwoHop
from edgeveil.privacy.epsilon import check_epsilon

SAY_EPSILON = "epsilon is required (for example epsilon=1); smaller is more private"

_FEW_FALSE_EDGES = 4.0
_ENOUGH_FOR_FLIPPING = 4.0  # epsilon; below, few false edges mean a tiny graph


def recommended(
    *,
    epsilon: float | None = None,
    model: Literal["joint", "public"] = "joint",
    output: Literal["scores", "embeddings"] = "scores",
    n_nodes: int | None = None,
) -> Mechanism:
    """The mechanism to start with at this epsilon, by a fixed rule that never sees the data.

    The rule comes from measurements; `edgeveil.evaluate` measures mechanisms on your own graph.

    Scores, joint model: two-hop. Up to epsilon = 0.4 it puts its whole budget into degrees and
    then equals the degree prior. Scores, public model: the degree prior; apart from edge flipping
    it is the only one whose price does not grow with the number of rows. In both models: edge
    flipping, if epsilon is at least 4 and it adds at most 4 false edges to a node,
    n / (1 + e^epsilon) <= 4. These are few beside the true edges, while two-hop gains little from
    a larger epsilon. On all generated networks that were tried (60 to 30,000 nodes, average degree
    8 to 160), edge flipping then finds more of the nearest nodes.

    Embeddings, joint model: own-list-embedding, whose price is 0. With a wide hash or none, a
    noisy second hop added at most one point of accuracy to it at epsilon <= 2 (docs/embed.md).
    Embeddings, public model: aggregation, whose price is epsilon for all rows together. (Of
    instant-embedding each row has the price epsilon.) To predict classes of nodes, call
    `edgeveil.classify` instead: it needs no embedding and finds more for the same epsilon.

    Parameters
    ----------
    epsilon : float
        Privacy loss. Not needed for embeddings in the joint model.
    model : {"joint", "public"}
        Who may see a row: only the member at its source, or anyone.
    output : {"scores", "embeddings"}
        What to compute.
    n_nodes : int, optional
        Size of the public node set. Without it, edge flipping is not considered.

    Examples
    --------
    >>> recommended(epsilon=1, n_nodes=10_000).name
    'two-hop'
    >>> recommended(epsilon=10, n_nodes=10_000).name
    'edge-flipping'
    >>> recommended(output="embeddings").name
    'own-list-embedding'
    >>> recommended(output="embeddings", model="public", epsilon=1).name
    'aggregation'
    """
    check_model(model)
    check_choice("output", output, "scores", "embeddings")
    if output == "embeddings" and model == "joint":
        return OwnListEmbedding()
    if epsilon is None:
        raise ParameterError(SAY_EPSILON)
    check_epsilon(epsilon)
    if output == "embeddings":
        return Aggregation(epsilon=epsilon)
    if n_nodes is not None and epsilon >= _ENOUGH_FOR_FLIPPING:
        false_edges = n_nodes / (1 + math.exp(min(epsilon, 700.0)))
        if false_edges <= _FEW_FALSE_EDGES:
            return EdgeFlipping(epsilon=epsilon, model=model)
    if model == "public":
        return DegreePrior(epsilon=epsilon, model=model)
    return TwoHop(epsilon=epsilon)


def built_in(name: str) -> type[Mechanism] | None:
    """The class with this name, in whatever case and with or without hyphens; None if none has it.

    >>> built_in("two-hop") is built_in("TwoHop") is built_in("two_hop")
    True
    """
    plain_name = _plain(name)
    for kind in (*MECHANISMS, *DATA_MECHANISMS):
        if plain_name in (_plain(kind.name), _plain(kind.__name__)):
            return kind
    return None


def make_by_name(name: str, **given: Any) -> Mechanism:
    """Build a mechanism from its name and those parameters that are not None."""
    kind = built_in(name)
    if kind is None:
        names = [kind.name for kind in MECHANISMS]
        raise ParameterError(
            f'there is no mechanism "{name}"{did_you_mean(name, names) or "."} There are: '
            f"{', '.join(names)}; one of your own is given as an object"
        )
    fields_by_name = {field.name: field for field in fields(kind) if field.init}
    parameters = {parameter: value for parameter, value in given.items() if value is not None}
    if "model" not in fields_by_name and parameters.get("model") == kind.model:
        del parameters["model"]  # it is for that model only
    refuse_paper_names(kind.name, parameters, fields_by_name)
    for parameter in parameters:
        if parameter not in fields_by_name:
            raise ParameterError(f"{kind.name} has no {parameter}: leave it out")
    for parameter, field in fields_by_name.items():
        if field.default is MISSING and parameter not in parameters:
            if parameter == "epsilon":
                raise ParameterError(SAY_EPSILON)
            raise ParameterError(
                f"{kind.name} needs {parameter}: give the mechanism itself, as in "
                f"mechanism={kind.__name__}({parameter}=...)"
            )
    return kind(**parameters)


def _plain(name: str) -> str:
    return re.sub("[-_ ]", "", name).lower()


def mechanism_for_scores(
    graph: Graph,
    mechanism: Mechanism | str | None,
    epsilon: float | None,
    model: Literal["joint", "public"] | None,
) -> Mechanism:
    """The given mechanism of rankings (or its name), or the recommended one for this graph."""
    if mechanism is None:
        if epsilon is None:
            raise ParameterError(SAY_EPSILON)
        return recommended(epsilon=epsilon, model=model or "joint", n_nodes=graph.n_nodes)
    if isinstance(mechanism, str):
        mechanism = make_by_name(mechanism, epsilon=epsilon, model=model)
    if check_mechanism(mechanism).output != "scores":
        raise ParameterError(f"{mechanism.name} gives {mechanism.output}, which have no ranking")
    refuse_two_values(mechanism, epsilon=epsilon, model=model)
    return mechanism


def mechanism_for_lists(
    graph: Graph,
    mechanism: Mechanism | str | None,
    epsilon: float | None,
    *,
    knows_followers: bool,
) -> Mechanism:
    """The given mechanism of suggestions (or its name), or `Suggest` for this graph."""
    if isinstance(mechanism, str):
        directed, knows = graph.directed or None, knows_followers or None
        mechanism = make_by_name(
            mechanism, epsilon=epsilon, directed=directed, knows_followers=knows
        )
        knows_followers = False  # it is in the mechanism
    if mechanism is None:
        if epsilon is None:
            raise ParameterError(SAY_EPSILON)
        return Suggest(epsilon=epsilon, directed=graph.directed, knows_followers=knows_followers)
    if check_mechanism(mechanism).output != "lists":
        raise ParameterError(f"{mechanism.name} gives {mechanism.output}, not lists")
    if knows_followers:
        raise ParameterError("knows_followers is for the default mechanism; give it to yours")
    refuse_two_values(mechanism, epsilon=epsilon)
    return mechanism


def mechanism_for_embeddings(
    graph: Graph,
    mechanism: Mechanism | str | None,
    epsilon: float | None,
    model: Literal["joint", "public"] | None,
    dimension: int | Literal["nodes"] | None,
    *,
    or_scores: bool = False,
) -> Mechanism:
    """The given mechanism of embeddings (or its name), or the recommended one for this graph.

    With `or_scores` it may give scores, which the caller embeds in `dimension` dimensions.
    """
    if mechanism is None:
        return for_graph(default_embedding(epsilon, model, dimension), graph)
    if dimension == "nodes":
        raise ParameterError('dimension="nodes" is for the own list, the default mechanism')
    kind = built_in(mechanism) if isinstance(mechanism, str) else check_mechanism(mechanism)
    embeds = not (or_scores and kind is not None and kind.output == "scores")
    given: dict[str, Any] = {"epsilon": epsilon, "model": model}
    if embeds:
        given["dimension"] = dimension
    if isinstance(mechanism, str):
        mechanism = for_graph(make_by_name(mechanism, **given), graph)
    else:
        refuse_two_values(mechanism, **given)
    if embeds and mechanism.output != "embeddings":
        raise ParameterError(
            f"{mechanism.name} gives {mechanism.output}; embed() of a release of scores makes "
            "embeddings of them"
        )
    return mechanism


def default_embedding(
    epsilon: float | None,
    model: Literal["joint", "public"] | None,
    dimension: int | Literal["nodes"] | None,
) -> Mechanism:
    """The recommended mechanism of embeddings; `for_graph` completes it."""
    check_model(model or "joint")
    if dimension == "nodes" and model == "public":
        raise ParameterError('dimension="nodes" is for the own list, the default mechanism')
    if epsilon is not None and model in (None, "joint"):
        raise ParameterError(
            "an embedding of a member's own list costs nothing: leave epsilon out, or name the "
            "mechanism to charge it for"
        )
    if dimension == "nodes":
        return OwnListEmbedding(hashed=False)
    best = recommended(epsilon=epsilon, model=model or "joint", output="embeddings")
    return best if dimension is None else replace(best, dimension=dimension)


def for_graph(mechanism: Mechanism, graph: Graph) -> Mechanism:
    """A mechanism chosen by name or by default, with what it needs to know of the graph.

    That is public: whether the graph is directed, and the number of nodes.
    """
    if isinstance(mechanism, OwnListEmbedding) and not mechanism.hashed:
        return replace(mechanism, dimension=graph.n_nodes)
    if graph.directed and any(field.name == "directed" for field in fields(mechanism)):
        parameters: dict[str, Any] = {"directed": True}
        return replace(mechanism, **parameters)
    return mechanism


def refuse_two_values(mechanism: Mechanism, **given: Any) -> None:
    """Refuse a parameter whose value here differs from the mechanism's own."""
    for name, value in given.items():
        own = mechanism.guarantee(1).model if name == "model" else getattr(mechanism, name, None)
        if value is not None and own is None:
            raise ParameterError(f"{mechanism.name} has no {name}: leave it out")
        if value is not None and own != value:
            raise ParameterError(
                f"{name} is given twice: {value!r} here and {own!r} by {mechanism.name}; "
                "leave one of them out"
            )
