import pytest

from fewtags.report.runs import read_run, read_runs
from fewtags.report.words import count, duration, filled_sentence, headline, percent, points, ranked, signed
from tests.report.fabricate import write_run


def plain_spaces(text):
    return text.replace("\N{NARROW NO-BREAK SPACE}", " ")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (points(61.25), "61.2"),
        (points(None), "–"),
        (signed(6.24), "+6.2"),
        (signed(-1.0), "−1.0"),
        (signed(-0.01), "0.0"),
        (signed(None), ""),
        (percent(0.1), "10 %"),
        (percent(0.056), "5.6 %"),
        (percent(0.0), "0 %"),
        (count(12345.0), "12,345"),
        (duration(59.6), "1 min 00 s"),
        (duration(9), "9.0 s"),
        (duration(3725), "1 h 02 min"),
        (duration(None), "–"),
    ],
)
def test_numbers(written, expected):
    assert plain_spaces(written) == expected


def said(tmp_path, *runs):
    folders = [write_run(tmp_path / f"{i}", method, ap, known) for i, (method, ap, known) in enumerate(runs)]
    return plain_spaces(headline(read_runs(folders)))


def test_headline_of_one_run(tmp_path):
    assert said(tmp_path, ("hst", 61.2, 0.1)) == "HST reaches 61.2 mAP with 10 % of the labels."


def test_headline_names_the_best_first_and_the_gap(tmp_path):
    text = said(tmp_path, ("plain", 55.0, 0.1), ("hst", 61.2, 0.1), ("ssgrl", 54.0, 0.1))
    assert text == "HST reaches 61.2 mAP with 10 % of the labels, 6.2 points ahead of plain (55.0); SSGRL 54.0."


def test_headline_does_not_flatter(tmp_path):
    text = said(tmp_path, ("plain", 58.0, 0.1), ("hst", 57.0, 0.1))
    assert text == "plain reaches 58.0 mAP with 10 % of the labels, 1.0 points ahead of HST (57.0)."


def test_headline_keeps_the_upper_bound_apart(tmp_path):
    text = said(tmp_path, ("full_labels", 71.0, 1.0), ("hst", 61.2, 0.1))
    assert text == "HST reaches 61.2 mAP with 10 % of the labels; trained on all labels: 71.0."


def test_headline_says_when_shares_differ_or_scores_are_level(tmp_path):
    assert "; plain 60.0 with 20 % of the labels." in said(tmp_path, ("hst", 61.2, 0.1), ("plain", 60.0, 0.2))
    assert ", level with plain (61.2)." in said(tmp_path / "level", ("hst", 61.2, 0.1), ("plain", 61.2, 0.1))


def test_headline_without_scores(tmp_path):
    assert said(tmp_path, ("hst", 50.0, 0.1)).startswith("HST reaches")
    run = read_run(write_run(tmp_path / "unscored", **{"mean_ap": 50.0}))
    run.metrics["mAP"] = None
    assert headline([run]) == "HST could not be scored: no test label is known."


def test_ranked_puts_the_unscored_last(tmp_path):
    runs = read_runs([write_run(tmp_path / m, m, ap) for m, ap in [("plain", 5.0), ("hst", 9.0), ("sst", 7.0)]])
    runs[1].metrics["mAP"] = None
    assert [run.method for run in ranked(runs)] == ["sst", "plain", "hst"]


def test_filled_sentence_gives_counts_shares_and_the_ceiling(tmp_path):
    text = plain_spaces(filled_sentence(read_run(write_run(tmp_path / "hst"))))
    assert "779 labels from evidence within the image (79 % right)" in text
    assert "at most 28 % of the 6,400 hidden present labels" in text
    assert filled_sentence(read_run(write_run(tmp_path / "plain", "plain"))) == ""
