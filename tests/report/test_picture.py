import numpy as np
from PIL import Image

from fewtags.report import comparison_picture
from tests.report.fabricate import write_examples, write_run


def test_one_wide_picture_with_examples(tmp_path):
    hst = write_examples(write_run(tmp_path / "hst"))
    plain = write_run(tmp_path / "plain", "plain", 55.0)
    out = comparison_picture([plain, hst], tmp_path / "docs" / "demo.png")
    image = Image.open(out)
    assert image.width == 1760
    assert image.width > 1.5 * image.height
    # Colours of the drawn example images reach the lower half: they are there.
    lower = np.asarray(image.convert("RGB"))[image.height // 2 :].reshape(-1, 3)
    assert (lower == (40, 90, 160)).all(axis=1).sum() > 500


def test_without_examples_or_pseudo_labels_it_is_the_scores_alone(tmp_path):
    runs = [write_run(tmp_path / m, m, ap) for m, ap in [("plain", 55.0), ("ssgrl", 57.0), ("asl", 56.0)]]
    image = Image.open(comparison_picture(runs, tmp_path / "demo.png"))
    assert image.width > 3 * image.height
