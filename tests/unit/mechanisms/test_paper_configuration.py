"""Every mechanism of the paper has `paper`, which is its configuration (docs/paper.md)."""

from __future__ import annotations

import pytest

from edgeveil import mechanisms

CAPPED = ("DPPushFlowCap", "DPSparsePPR", "DPInstantEmbedding", "DPEmbeddingSparse")


@pytest.mark.parametrize("name", CAPPED)
@pytest.mark.parametrize("model", ["joint", "public"])
def test_capped_flows_have_the_papers_parameters(name, model):
    claim = getattr(mechanisms, name).paper(1.0, model=model)
    parameters = (claim.sigma, claim.rounds, claim.restart, claim.bound, claim.prepush)
    assert parameters == (1e-6, 100, 0.15, "paper", model == "joint")
    assert getattr(claim, "dimension", 256) == 256


def test_push_flow_and_edge_flipping_have_the_papers_parameters():
    flow = mechanisms.DPPushFlow.paper(1.0, 5)
    assert (flow.rounds, flow.restart, flow.bound) == (100, 0.15, "paper")
    assert mechanisms.EdgeFlipping.paper(1.0).restart == 0.15


def test_arguments_replace_the_papers_parameters():
    assert mechanisms.DPPushFlowCap.paper(1.0, sigma=1e-4).sigma == 1e-4
    assert mechanisms.DPPushFlow.paper(1.0, 5, model="public").model == "public"
