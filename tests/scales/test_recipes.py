"""The paper's numbers, one by one."""

import pytest

from igd.errors import UserError
from igd.method.objective import OBJECTIVES
from igd.method.similarity import PATCH, WHOLE_IMAGE
from igd.scales.recipes import RECIPES, find_objective, find_recipe


def test_paper_recipe_carries_every_hyperparameter_of_the_paper() -> None:
    paper = RECIPES["paper"]
    assert [scale.name for scale in paper.large] == ["global", "local"]
    assert [scale.name for scale in paper.small] == ["global"]
    for scale in (*paper.small, *paper.large):
        training = scale.training
        assert training.learning_rate == 1e-4
        assert training.weight_decay == 1e-6
        assert training.batch_size == 64
        assert training.epochs == 256
        assert training.steps is None
        assert training.epoch_size is None
        assert training.betas == (0.9, 0.999)
        assert training.schedule == "constant"
        assert training.e_step_every == 1
        assert training.online_rate is None
        assert training.balance is None
        assert training.clip is None
        assert not training.flip
        assert scale.latent_size == 128
        assert scale.width == 64
        assert scale.anomaly_share == 0.5
        assert scale.smoothing == 0
    whole, patches = paper.large
    assert (whole.patch, whole.similarity) == (None, WHOLE_IMAGE)
    assert (patches.patch, patches.stride, patches.similarity) == (32, 16, PATCH)
    assert paper.small[0].similarity == PATCH
    igd = OBJECTIVES["igd"]
    assert (igd.rho, igd.critic_weight, igd.reconstruction_weight, igd.fooling_weight) == (
        0.15,
        1,
        1,
        0.1,
    )


def test_authors_recipe_and_objective_carry_what_their_code_does() -> None:
    whole, patches = RECIPES["authors"].large
    for scale in (whole, patches):
        assert scale.training.betas == (0.0, 0.9)
        assert scale.training.schedule == "polynomial"
        assert scale.training.e_step_every == 10
        assert scale.training.flip
    assert (whole.training.batch_size, patches.training.batch_size) == (16, 450)
    assert (whole.anomaly_share, patches.anomaly_share) == (0.9, 0.1)
    authors = OBJECTIVES["authors"]
    assert (authors.zeta, authors.mean_floor, authors.product_map) == (0.2, 0.1, False)
    assert (
        authors.variance_floor * whole.latent_size == authors.scoring_floor * whole.latent_size == 1
    )


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(UserError, match="fast"):
        find_recipe("quick")
    with pytest.raises(UserError, match="dsvdd"):
        find_objective("svdd")
