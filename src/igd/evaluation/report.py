"""One self-contained HTML page about a detector on a test set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from sklearn.metrics import precision_recall_curve, roc_auc_score, roc_curve

from igd.evaluation import figures
from igd.evaluation.colour_bar import colour_bar
from igd.evaluation.evaluate import Evaluation, ScoredSample
from igd.evaluation.galleries import galleries, kinds_of
from igd.evaluation.metrics import why_undefined
from igd.evaluation.page import write_page
from igd.evaluation.summary import as_table, choices, possible_rates
from igd.inference.predictor import Predictor

if TYPE_CHECKING:
    from igd.detector import IGD


def write_report(path: Path, detector: Predictor, evaluation: Evaluation, title: str) -> None:
    """Write the page; its pictures are inside it."""
    write_page(path, "report.html.j2", _contents(detector, evaluation, title))


def _contents(detector: Predictor, evaluation: Evaluation, title: str) -> dict[str, Any]:
    metrics, predicted = evaluation.metrics, evaluation.predicted
    rate = detector.false_alarm_rate_
    return {
        "title": title,
        "subtitle": f"{metrics['n_normal']} normal and {metrics['n_anomalous']} anomalous test "
        f"images; "
        f"{_made_with(detector)}"
        f"alarms at a promised false-alarm rate of {rate:.3g}",
        "undefined": metrics.get("undefined"),
        "summary": metrics["summary"],
        "choices": as_table(
            metrics["at_promised_rates"], metrics["n_normal"], metrics["n_anomalous"]
        ),
        "rates_chart": _rates_chart(detector, predicted),
        "numbers": [
            _number(metrics, name, key) for name, key in NUMBERS if metrics[key] is not None
        ],
        "charts": [
            *_score_charts(detector, predicted),
            *(_latent_charts(detector, predicted) if is_detector(detector) else ()),
            *(_training_charts(detector) if is_detector(detector) else ()),
        ],
        "defects": _defect_rows(predicted),
        **galleries(detector, predicted),
        "colour_bar": colour_bar(detector.background_level_, detector.pixel_threshold_),
        "provenance": _provenance(detector),
    }


NUMBERS = (
    ("image AUROC", "image_auroc"),
    ("average precision", "average_precision"),
    ("F1 at the threshold", "f1_at_threshold"),
    ("F1, best possible", "f1_best"),
    ("pixel AUROC, pooled", "pixel_auroc"),
    ("pixel AUROC, per image", "pixel_auroc_per_image"),
    ("AUPRO (30 %)", "aupro"),
    ("pixel F1, best possible", "pixel_f1_best"),
    ("false alarms", "false_alarm_rate"),
    ("missed", "miss_rate"),
    ("accuracy at 0.5", "accuracy_at_half"),
)


def is_detector(predictor: Predictor) -> TypeGuard[IGD]:
    """Whether this is the detector itself, and not an exported model, which knows less."""
    return hasattr(predictor, "fitted_")


def _made_with(predictor: Predictor) -> str:
    """What made a detector; of an exported model, nothing is known but its scores."""
    if not is_detector(predictor):
        return "an exported model; "
    told = predictor.fitted_.parameters
    objective = f"objective {told['objective']}, " if predictor.fitted_.trained else ""
    return f"recipe {told['recipe']}, {objective}seed {predictor.seed}; "


def _number(metrics: dict[str, Any], name: str, key: str) -> dict[str, str]:
    low_high = metrics["intervals_95"].get(key)
    return {
        "name": name,
        "value": f"{metrics[key]:.3f}",
        "interval": "{:.3f} to {:.3f}".format(*low_high) if low_high else "",
    }


def _score_charts(detector: Predictor, predicted: list[ScoredSample]) -> list[tuple[str, str]]:
    labels = np.array([each.sample.label for each in predicted])
    scores = np.array([each.score for each in predicted])
    groups = {"anomalous": scores[labels == 1], "normal": scores[labels == 0]}
    histogram = figures.histogram(groups, detector.threshold_, "score", "score histogram")
    charts = [("Scores; the dashed line is the threshold.", histogram)]
    if why_undefined(labels):
        return charts
    false_positives, true_positives, _ = roc_curve(labels, scores)
    precision, recall, _ = precision_recall_curve(labels, scores)
    receiver = figures.curve(
        false_positives, true_positives, "false alarms", "defects found", "ROC curve", diagonal=True
    )
    trade = figures.curve(
        recall, precision, "defects found", "share of alarms that are right", "PR curve"
    )
    return [
        *charts,
        ("Receiver operating characteristic.", receiver),
        ("Precision and recall.", trade),
    ]


def _rates_chart(detector: Predictor, predicted: list[ScoredSample]) -> str:
    """Misses and realised false alarms over the promised rate."""
    labels = np.array([each.sample.label for each in predicted])
    scores = np.array([each.score for each in predicted])
    offered = choices(labels, scores, detector.calibration_, possible_rates(detector.calibration_))
    anomalous, normal = int(labels.sum()), int((labels == 0).sum())
    shares = {}
    if anomalous:
        shares["missed"] = [(each.misses or 0) / anomalous for each in offered]
    if normal:
        shares["false alarms"] = [(each.false_alarms or 0) / normal for each in offered]
    return figures.rates(
        [each.promised for each in offered],
        shares,
        "promised rate of false alarms",
        "misses and false alarms over the promised rate",
    )


def _latent_charts(detector: IGD, predicted: list[ScoredSample]) -> list[tuple[str, str]]:
    from igd.evaluation.latents import latent_planes

    shown, planes = latent_planes(detector, [each.sample for each in predicted])
    kinds = [sample.kind for sample in shown]
    order = kinds_of(predicted)
    caption = "Latents of the {} model (t-SNE): near is alike, far and axes mean nothing."
    return [
        (caption.format(name), figures.points(places, kinds, order, f"latents of the {name} model"))
        for name, places in planes.items()
    ]


def _training_charts(detector: IGD) -> list[tuple[str, str]]:
    from igd.method.training_state import RECORDED

    charts = []
    for scale in detector.fitted_.scales:
        if scale.history is None:
            continue
        history = scale.history.double().numpy()
        window = max(1, len(history) // 100)
        usable = (
            history[: len(history) // window * window]
            .reshape(-1, window, len(RECORDED))
            .mean(axis=1)
        )
        series = {
            name: usable[:, number]
            for number, name in enumerate(RECORDED[:4])
            if usable[:, number].any()
        }
        picture = figures.lines(
            series, "steps" if window == 1 else f"steps / {window}", "loss", "training losses"
        )
        charts.append((f"Training of the {scale.settings.name} model.", picture))
    return charts


def _defect_rows(predicted: list[ScoredSample]) -> list[list[str]]:
    good = [each.score for each in predicted if not each.sample.label]
    rows = []
    for kind in kinds_of(predicted):
        own = [each for each in predicted if each.sample.kind == kind]
        scores = [each.score for each in own]
        area = "-"
        if own[0].sample.label and good:
            area = f"{roc_auc_score([0] * len(good) + [1] * len(scores), good + scores):.3f}"
        called = sum(each.is_anomalous for each in own)
        rows.append(
            [kind, str(len(own)), f"{called} of {len(own)}", f"{np.mean(scores):.3f}", area]
        )
    return rows


def _provenance(detector: Predictor) -> list[tuple[str, Any]]:
    stated = {
        key.replace("_", " "): value
        for key, value in detector.provenance_.items()
        if value not in ([], None)
    }
    if not is_detector(detector):
        return [*stated.items()]
    parameters = ", ".join(
        f"{name}={value}" for name, value in detector.get_params().items() if value is not None
    )
    return [*stated.items(), ("parameters", parameters)]
