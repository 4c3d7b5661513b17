"""Parameters are spelled once, and the names in their help are those of what they name."""

from dataclasses import fields

from igd import IGD
from igd.backbones import architectures
from igd.data import geometry
from igd.method import objective
from igd.scales import recipes
from igd.training import parameters
from igd.training.parameters import Parameters


def test_names_are_those_of_what_they_name() -> None:
    assert set(parameters.RECIPES) == set(recipes.RECIPES)
    assert tuple(objective.OBJECTIVES) == parameters.OBJECTIVES
    assert parameters.FITS == geometry.FITS
    assert parameters.PRETRAININGS == recipes.PRETRAININGS
    assert parameters.BACKBONE == architectures.DEFAULT
    every = [recipe.frozen_small + recipe.frozen_large for recipe in recipes.RECIPES.values()]
    scales = {scale.name for settings in every for scale in settings}
    assert set(parameters.SCALES) == scales


def test_the_constructor_stores_every_parameter_as_it_is() -> None:
    assert IGD().get_params() == {each.name: each.default for each in fields(Parameters)}
    given = {"recipe": "paper", "scales": ("local",), "seed": 3}
    assert given.items() <= IGD(**given).get_params().items()


def test_every_parameter_says_what_it_is_for() -> None:
    assert all(each.metadata["help"] for each in fields(Parameters))


def test_changed_are_those_set_to_something_else_than_their_default() -> None:
    detector = IGD(steps=3, objective="igd", width=None)
    assert detector.changed("steps", "objective", "width", "epochs") == {"steps": 3}
