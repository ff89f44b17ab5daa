import numpy as np
import pytest
from scipy.special import expit, logit

from fewtags.completion.calibration import (
    AIM,
    CROSS,
    FOLDS,
    INTRA,
    OFFSET_SPREAD,
    SPREAD,
    TERMS,
    Calibrator,
    Entries,
    crossfitted,
    fit,
    fit_folds,
    fit_line,
    reliability,
    scale_of,
    terms_of,
)
from fewtags.completion.filling import probabilities
from tests.completion.fabricate import question, world
from tests.oracles.completion import calibrated_logit, expected_calibration_error, surprise

CATEGORIES = 3


def made_up(count: int = 200, seed: int = 0):
    rng = np.random.default_rng(seed)
    category = rng.integers(0, CATEGORIES, count)
    z, intra, cross = rng.normal(0, 2, count), rng.random(count), rng.normal(0.3, 0.2, count)
    plain = 0.5 * z + rng.normal(0, 1, count)
    plain[::5], intra[::3], cross[::4] = np.nan, np.nan, np.nan
    present = rng.random(count) < expit(0.6 * z - 0.5)
    found = Entries(category, *(column.astype(np.float32) for column in (z, plain, intra, cross)))
    scale = scale_of(np.array([5, 1, 30]), np.array([20, 20, 60]), intra[:, None], cross[:, None] * np.ones(3))
    return found, present, scale


def score(entries: Entries, i: int) -> float:
    own, plain = float(entries.logit[i]), float(entries.plain[i])
    return own if np.isnan(plain) else (own + plain) / 2


def test_logits_are_the_written_formula():
    entries, _, scale = made_up()
    weights, offsets = np.array([0.3, 0.7, 1.2, 0.4, 0.2, 0.5, 0.6, 0.1]), np.array([0.2, -0.4, 0.1])
    found = Calibrator(weights, offsets).logits(terms_of(entries, scale), entries.category)
    rates = logit(scale.rate)
    for i in range(len(entries)):
        c = entries.category[i]
        intra = 0 if np.isnan(entries.intra[i]) else logit(entries.intra[i]) - scale.intra_mean
        cross = (entries.cross[i] - scale.cross_mean[c]) / scale.cross_spread[c]
        cross = 0 if np.isnan(cross) else cross
        expected = calibrated_logit(weights, offsets[c], score(entries, i), intra, cross, rates[c] - rates.mean())
        assert found[i] == pytest.approx(expected, abs=1e-4)


def test_scale_by_plain_counting():
    cross = np.array([[0.2, np.nan], [0.4, np.nan], [np.nan, np.nan]])
    intra = np.array([[0.5, np.nan], [0.9, np.nan], [np.nan, np.nan]])
    scale = scale_of(np.array([3, 0]), np.array([9, 0]), intra, cross)
    overall = 4 / 11
    assert scale.rate == pytest.approx([(3 + overall) / 10, overall])
    assert scale.cross_mean == pytest.approx([0.3, 0])
    assert scale.cross_spread == pytest.approx([0.1, 1])
    assert scale.intra_mean == pytest.approx((logit(0.5) + logit(0.9)) / 2)


def test_the_fit_is_the_most_probable_one():
    """No step in any direction lowers the negative log posterior of the oracle."""
    entries, present, scale = made_up()
    terms = terms_of(entries, scale)
    found = fit(terms, entries.category, present, CATEGORIES)
    z = np.array([score(entries, i) for i in range(len(entries))])
    intra, cross = terms[:, INTRA].sum(1).astype(float), terms[:, CROSS].sum(1).astype(float)
    rows = list(zip(z, intra, cross, terms[:, -1].astype(float), entries.category, present, strict=True))

    def value(weights, offsets):
        return surprise(weights, offsets, rows, AIM, SPREAD, OFFSET_SPREAD)

    best = value(found.weights, found.offsets)
    for place in range(len(found.weights)):
        for step in (-0.02, 0.02):
            moved = found.weights.copy()
            moved[place] += step
            if moved[place] >= 0 or place in (0, 7):
                assert value(moved, found.offsets) > best - 1e-4
    for place in range(CATEGORIES):
        for step in (-0.05, 0.05):
            moved = found.offsets.copy()
            moved[place] += step
            assert value(found.weights, moved) > best


def test_with_no_labels_the_score_is_believed():
    entries, _, scale = made_up()
    nothing = fit(np.zeros((0, len(TERMS)), np.float32), np.zeros(0, int), np.zeros(0, bool), CATEGORIES)
    assert nothing.logits(terms_of(entries, scale), entries.category) == pytest.approx(entries.score, abs=1e-5)
    assert fit_line(np.zeros(0), np.zeros(0, bool))(np.array([0.3, 0.9])) == pytest.approx([0.3, 0.9])


def test_score_and_evidence_never_count_against():
    entries, _, scale = made_up()
    against = entries.logit < 0
    found = fit(terms_of(entries, scale), entries.category, against, CATEGORIES)
    assert (found.weights[1:7] >= 0).all()


def test_no_label_teaches_the_calibrator_that_scores_it():
    entries, present, scale = made_up()
    terms, folds = terms_of(entries, scale), np.arange(len(entries)) % FOLDS
    flipped = np.where(folds == 2, ~present, present)
    scored = [
        crossfitted(fit_folds(terms, entries.category, labels, folds, CATEGORIES), terms, entries.category, folds)
        for labels in (present, flipped)
    ]
    assert np.array_equal(scored[0][folds == 2], scored[1][folds == 2])
    assert not np.array_equal(scored[0][folds == 0], scored[1][folds == 0])


def test_ece_by_plain_counting():
    rng = np.random.default_rng(0)
    p = np.append(rng.random(300), [0.0, 1.0])
    present = rng.random(302) < p**2
    assert reliability(p, present).ece == pytest.approx(expected_calibration_error(p, present, 15))
    curve = reliability(np.array([0.1, 0.11, 0.9]), np.array([False, True, True]), bins=2)
    assert (curve.count, curve.present) == ([2, 1], [0.5, 1.0])
    assert reliability(np.zeros(0), np.zeros(0, bool)).ece == 0


def test_calibration_lowers_the_error_on_labels_it_has_not_seen():
    asked, truth = question(world(), 0)
    before = reliability(expit(asked.fill.logit.astype(float)), truth).ece
    after = reliability(expit(probabilities(asked).fill), truth).ece
    assert after < 0.5 * before


def test_a_line_reads_evidence_as_a_probability():
    rng = np.random.default_rng(0)
    evidence = rng.uniform(0.05, 0.95, 5000)
    present = rng.random(5000) < expit(2 * logit(evidence) - 1)
    line = fit_line(evidence, present)
    assert (line.slope, line.shift) == (pytest.approx(2, abs=0.2), pytest.approx(-1, abs=0.15))
