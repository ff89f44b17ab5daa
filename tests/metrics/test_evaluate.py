import json

import numpy as np
import pytest

from fewtags.metrics import average_precision, evaluate, voc_average_precision

NAMES = ["mAP", "mAP_voc", "OP", "OR", "OF1", "CP", "CR", "CF1"]
NAMES += [f"{name}_top3" for name in NAMES[2:]]


def made_up():
    random = np.random.default_rng(0)
    labels = np.where(random.random((50, 4)) < 0.4, 1, -1)
    labels[:, 2] = -1
    return random.random((50, 4)), labels


def test_percentages_under_their_names_and_valid_json():
    probabilities, labels = made_up()
    metrics = evaluate(probabilities, labels, ["a", "b", "c", "d"])
    assert set(metrics) == {*NAMES, "per_category", "categories_without_positives"}
    assert metrics["mAP"] == pytest.approx(100 * np.nanmean(average_precision(probabilities, labels)))
    assert metrics["mAP_voc"] == pytest.approx(100 * np.nanmean(voc_average_precision(probabilities, labels)))
    assert metrics["categories_without_positives"] == ["c"]
    assert metrics["per_category"]["c"] is None
    assert json.loads(json.dumps(metrics, allow_nan=False)) == metrics


def test_a_perfect_model_scores_a_hundred():
    _, labels = made_up()
    metrics = evaluate((labels == 1).astype(float), labels)
    assert {metrics[name] for name in NAMES[:8]} == {100.0}


def test_nothing_to_score_is_none_not_nan():
    metrics = evaluate(np.full((3, 2), 0.5), np.zeros((3, 2)))
    assert metrics["mAP"] is None
    assert metrics["categories_without_positives"] == ["0", "1"]


def test_logits_are_refused():
    with pytest.raises(ValueError, match="were logits passed"):
        evaluate(np.array([[-2.0, 3.0]]), np.array([[1, -1]]))
