"""What a mechanism gets from its base class."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from edgeveil.errors import ParameterError
from edgeveil.jobs import release
from edgeveil.mechanisms.base import Mechanism, OnceForAll, laplace_statistic
from edgeveil.mechanisms.hard_pairs import wedge
from edgeveil.mechanisms.requirements import check_mechanism
from edgeveil.privacy.noise import NoiseSource


class DPDegrees2(Mechanism):
    """Everybody's degree, with noise for each row."""

    theorem = "an edge moves two degrees by one each"
    epsilon: float
    model: str = "public"
    restart: float = 0.15
    directed: bool = False

    def measure(self, graph, shared, views):
        rows = np.tile(graph.degrees, (len(views.sources), 1))
        yield laplace_statistic(rows, sensitivity=2, epsilon=self.epsilon)


class Variant(DPDegrees2):
    """With a parameter more."""

    power: float = 1.0


class Named(DPDegrees2):
    name = "my-own"


class _Hidden(DPDegrees2):
    pass


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (DPDegrees2, "dp-degrees2"),
        (Variant, "variant"),
        (Named, "my-own"),
        (_Hidden, "hidden"),
    ],
)
def test_name_of_a_mechanism_follows_its_class(kind, name):
    assert kind.name == name


def test_fields_without_decorator_are_keyword_only_and_frozen():
    mechanism = Variant(epsilon=1.0, power=2.0)
    assert [field.name for field in dataclasses.fields(mechanism)][-1] == "power"
    with pytest.raises(dataclasses.FrozenInstanceError):
        mechanism.power = 3.0
    with pytest.raises(TypeError, match="positional"):
        Variant(1.0)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"epsilon": -1.0}, "epsilon must be a positive number"),
        ({"epsilon": 1.0, "model": "secret"}, "model must be"),
        ({"epsilon": 1.0, "restart": 2.0}, "restart must be"),
        ({"epsilon": 1.0, "directed": 1}, "directed must be True or False"),
    ],
)
def test_fields_with_our_names_are_checked(wrong, told):
    with pytest.raises(ParameterError, match=told):
        DPDegrees2(**wrong)


def test_rows_without_estimate_are_the_noised_statistic():
    noise = NoiseSource.insecure(1)
    released = release(wedge().graph, DPDegrees2(epsilon=1.0), [0, 1], noise=noise)
    assert released.values.shape == (2, wedge().graph.n_nodes)
    assert (released.values != wedge().graph.degrees).all()


def test_laplace_statistic_copies_and_calibrates_for_its_width():
    values = np.ones(4)
    statistic = laplace_statistic(values, sensitivity=2, epsilon=0.1, error=0.5)
    assert not np.shares_memory(statistic.values, values)
    calibration = statistic.calibration
    assert (calibration.coordinates, calibration.sensitivity) == (4, 2)
    assert calibration.error == 0.5
    assert Fraction(calibration.epsilon) <= Fraction(1, 10), "one tenth, not its nearest float"


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (type("Bare", (OnceForAll,), {}), "needs a `theorem` and a method `estimate` or `measure`"),
        (type("Silent", (OnceForAll,), {"theorem": "x"}), "needs a method `estimate` or `measure`"),
        (type("NoLists", (DPDegrees2,), {"output": "lists"}), "needs a method `lists`"),
    ],
)
def test_what_a_mechanism_needs_is_said(kind, told):
    with pytest.raises(ParameterError, match=told):
        check_mechanism(kind(epsilon=1.0))
