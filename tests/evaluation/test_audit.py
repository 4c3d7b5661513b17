"""The audit: odd images come first, each judged once and by a model that never saw it."""

import re
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from conftest import spotted, stripes

from igd import IGD
from igd.data.sources import as_source
from igd.errors import UserError
from igd.evaluation.audit import SHOWN, Audited, audit, deal, deviations, write_audit_page

ODD = [3, 11, 26, 40]


def contaminated() -> np.ndarray:
    """60 photographs of the same stripes, four of which have a spot."""
    rng = np.random.default_rng(0)
    images = stripes(1) * rng.uniform(0.8, 1, (60, 1, 1)) + rng.normal(0, 4, (60, 32, 32))
    images = images.clip(0, 255).astype(np.uint8)
    images[ODD] = spotted(images[ODD], size=12)
    return images


class Spy(IGD):
    """A detector that tells which images it was given to learn from and to judge."""

    seen: ClassVar[list[tuple[set[str], list[str]]]] = []  # shared by clones

    def fit(self, X, y=None, **named):
        Spy.seen.append((set(as_source(X).names), []))
        return super().fit(X, y, **named)

    def predictions(self, images, **named):
        Spy.seen[-1][1].extend(as_source(images).names)
        return super().predictions(images, **named)


@pytest.fixture(scope="module")
def audited() -> list[Audited]:
    detector = IGD(
        objective="mse", pretrain="scratch", combination="sum", steps=40, width=4, batch_size=16
    )
    return audit(contaminated(), detector, folds=3, seed=0)


def test_odd_images_come_out_on_top(audited: list[Audited]) -> None:
    assert {int(each.name) for each in audited[:4]} == set(ODD)
    assert [each.deviation for each in audited] == sorted(
        (each.deviation for each in audited), reverse=True
    )
    assert audited[3].deviation > 2 * audited[4].deviation


def test_pictures_are_kept_of_the_first(audited: list[Audited]) -> None:
    assert [each.pictures is not None for each in audited] == [True] * SHOWN + [False] * (
        60 - SHOWN
    )


@pytest.mark.filterwarnings("ignore:.*model:")
@pytest.mark.parametrize("folds", [2, 5])
def test_each_image_is_judged_once_by_a_model_that_did_not_see_it(folds: int) -> None:
    Spy.seen.clear()
    audited = audit(stripes(23), Spy(pretrain="scratch", steps=2, width=2), folds=folds)
    everything = {str(number) for number in range(23)}
    assert len(Spy.seen) == folds
    for learnt, predicted in Spy.seen:
        assert learnt | set(predicted) == everything
        assert not learnt & set(predicted)
    assert sorted(name for _, predicted in Spy.seen for name in predicted) == sorted(everything)
    assert {each.name: each.fold for each in audited} == {
        name: fold for fold, (_, predicted) in enumerate(Spy.seen, start=1) for name in predicted
    }


@pytest.mark.filterwarnings("ignore:.*model:")
def test_the_same_seed_gives_the_same_ranking() -> None:
    def ranking(seed: int) -> list[tuple[str, float]]:
        return [
            (each.name, each.deviation)
            for each in audit(
                stripes(12), IGD(pretrain="scratch", steps=2, width=2), folds=2, seed=seed
            )
        ]

    assert ranking(0) == ranking(0) != ranking(1)


def test_folds_are_dealt_evenly() -> None:
    parts = deal(np.arange(11), 3, seed=0)
    assert sorted(np.concatenate(parts)) == list(range(11))
    assert sorted(map(len, parts)) == [3, 4, 4]


def test_groups_are_dealt_whole() -> None:
    groups = np.random.default_rng(0).permutation(np.repeat(np.arange(7), 3))
    parts = deal(groups, 3, seed=1)
    assert sorted(np.concatenate(parts)) == list(range(21))
    assert sum(len(np.unique(groups[part])) for part in parts) == 7
    with pytest.raises(UserError, match="with 7 groups it must lie between 2 and 7"):
        deal(groups, 8, seed=1)


@pytest.mark.parametrize("folds", [1, 11])
def test_impossible_folds(folds: int) -> None:
    with pytest.raises(
        UserError, match=f"folds is {folds}; with 10 images it must lie between 2 and 10"
    ):
        audit(stripes(10), IGD(), folds=folds)


def test_deviations_do_not_depend_on_a_models_scale_nor_mind_odd_images() -> None:
    rng = np.random.default_rng(0)
    scores, calibration = rng.normal(size=200), rng.normal(size=50)
    plain = deviations(scores, calibration)
    np.testing.assert_allclose(
        deviations(0.2 + 0.01 * scores, 0.2 + 0.01 * calibration), plain, atol=1e-9
    )
    scores[:10] = 50
    np.testing.assert_allclose(deviations(scores, calibration)[10:], plain[10:], atol=0.3)
    assert not deviations(np.ones(5), np.ones(3)).any()


def test_the_page_stands_alone_and_escapes_names(audited: list[Audited], tmp_path: Path) -> None:
    path = tmp_path / "audit.html"
    write_audit_page(path, audited, "audit of <script>", "60 images")
    page = path.read_text()
    assert "<script" not in page
    assert not re.search("https?:", page)
    assert "default-src 'none'; img-src data:" in page
    assert page.count("data:image/webp;base64,") == 2 * SHOWN
    assert re.search(rf"<b>1.</b>.*{audited[0].name}</span>", page, re.DOTALL)
