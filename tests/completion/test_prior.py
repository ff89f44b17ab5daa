import numpy as np
import pytest
from scipy.special import expit, logit

from fewtags.completion.filling import decide, probabilities
from fewtags.completion.prior import estimated_rates, no_shift, read_rates, shift_to
from fewtags.errors import UserError
from tests.completion.fabricate import question, world
from tests.oracles.completion import rate_by_em


def test_em_by_plain_loops():
    rng = np.random.default_rng(0)
    category = rng.integers(0, 2, 300)
    logits = rng.normal(-1, 2, 300)
    found = estimated_rates(logits, category, np.array([0.3, 0.1]))
    for c, known in ((0, 0.3), (1, 0.1)):
        assert found[c] == pytest.approx(rate_by_em(expit(logits[category == c]), known), abs=1e-3)


def test_em_finds_the_rate_of_shifted_data():
    rng = np.random.default_rng(1)
    present = rng.random(20_000) < 0.1
    score = rng.normal(np.where(present, 1.5, -1.5), 1.5)
    logits = 2 * 1.5 * score / 1.5**2 + logit(0.4)  # the exact posterior where 40 % are present
    assert estimated_rates(logits, np.zeros(20_000, int), np.array([0.4]))[0] == pytest.approx(0.1, abs=0.01)


def test_a_category_without_unknown_entries_keeps_its_rate():
    assert estimated_rates(np.zeros(3), np.zeros(3, int), np.array([0.5, 0.2]))[1] == pytest.approx(0.2)


def test_held_out_labels_are_thinned_to_the_new_rate():
    rng = np.random.default_rng(0)
    category = rng.integers(0, 2, 40_000)
    present = rng.random(40_000) < np.array([0.5, 0.2])[category]
    shift = shift_to(np.array([0.1, 0.2]), np.array([0.5, 0.2]), category, present, 0)
    kept = [present[shift.stands_for & (category == c)] for c in (0, 1)]
    assert kept[0].mean() == pytest.approx(0.1, abs=0.01)
    assert kept[1].mean() == pytest.approx(0.2, abs=0.01)
    assert len(kept[0]) == pytest.approx(len(kept[1]), rel=0.05)  # the mix of categories stays
    assert shift.logit == pytest.approx([logit(0.1) - logit(0.5), 0])


def test_the_same_rate_changes_nothing():
    asked, _ = question(world(), 0)
    same = shift_to(asked.scale.rate, asked.scale.rate, asked.held.category, asked.present, 0)
    assert same.stands_for.all()
    assert same.logit == pytest.approx(0)
    found = probabilities(asked)
    none = no_shift(asked.categories, len(asked.held))
    assert np.array_equal(
        decide(asked, found, 0.8, 0.05, same).values, decide(asked, found, 0.8, 0.05, none).values
    )


def test_reading_rates(tmp_path):
    file = tmp_path / "rates.csv"
    file.write_text("category,rate\ncat,0.25\n")
    assert read_rates(file, ["dog", "cat"], np.array([0.1, 0.5])) == pytest.approx([0.1, 0.25])
    file.write_text("category,rate\ncow,0.25\ncat,1.5\ndog,many\n")
    with pytest.raises(UserError) as problem:
        read_rates(file, ["dog", "cat"], np.array([0.1, 0.5]))
    assert "line 2, column 'category': the run has no category 'cow'" in str(problem.value)
    assert "line 3, column 'rate': '1.5' is not a share" in str(problem.value)
    assert "line 4, column 'rate': 'many' is not a share" in str(problem.value)
    file.write_text("name,rate\ncat,0.25\n")
    with pytest.raises(UserError, match="no column category"):
        read_rates(file, ["cat"], np.array([0.1]))
    with pytest.raises(UserError, match="neither a file nor the word estimate"):
        read_rates("estimated", ["cat"], np.array([0.1]))
