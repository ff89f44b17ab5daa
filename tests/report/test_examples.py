import base64
import io

import numpy as np
import pytest
from PIL import Image

from fewtags.errors import UserError
from fewtags.report.examples import cooccurrence, example_cards, merged_fills
from fewtags.report.overlays import attention_uri, overlay, photo_uri
from fewtags.report.runs import read_runs
from tests.report.fabricate import write_examples, write_run


def two_runs(tmp_path):
    hst = write_examples(write_run(tmp_path / "hst"))
    plain = write_examples(write_run(tmp_path / "plain", "plain"), filled=False, attention=False)
    return read_runs([hst, plain])


def opened(uri):
    head, _, content = uri.partition(",")
    assert head == "data:image/jpeg;base64"
    return Image.open(io.BytesIO(base64.b64decode(content)))


def test_what_runs_say_of_one_image_stands_together(tmp_path):
    cards = example_cards(two_runs(tmp_path))
    assert [card["name"] for card in cards] == ["street 0", "street 1", "street 2"]
    assert [run["name"] for run in cards[0]["runs"]] == ["HST", "plain"]
    assert cards[0]["known_present"] == ["person"]
    assert max(opened(cards[0]["src"]).size) == 480


def test_predictions_are_ordered_and_judged_by_known_and_hidden_labels(tmp_path):
    predicted = example_cards(two_runs(tmp_path))[0]["runs"][0]["predicted"]
    assert [guess["category"] for guess in predicted] == ["person", "cup", "laptop", "dining table"]
    assert [guess["right"] for guess in predicted] == [True, True, False, True]


def test_without_truth_nothing_is_judged(tmp_path):
    run = write_examples(write_run(tmp_path / "hst"), truth=False)
    card = example_cards(read_runs([run]))[0]
    assert {guess["right"] for guess in card["runs"][0]["predicted"]} == {None}
    assert card["hidden_present"] is None


def test_a_category_filled_by_both_modules_is_one_chip():
    fills = [
        {"category": "cup", "module": "cross", "evidence": 0.8, "right": True},
        {"category": "dog", "module": "cross", "evidence": None},
        {"category": "cup", "module": "intra", "evidence": 0.9, "right": True},
    ]
    assert merged_fills(fills) == [
        {"category": "cup", "right": True, "by": [("intra", 0.9), ("cross", 0.8)]},
        {"category": "dog", "right": None, "by": [("cross", None)]},
    ]


def test_attention_stands_by_category_with_sd_before_sa(tmp_path):
    attention = example_cards(two_runs(tmp_path))[0]["attention"]
    assert [entry["category"] for entry in attention] == ["person", "cup"]
    assert [[m["kind"] for m in entry["maps"]] for entry in attention] == [["SD", "SA"]] * 2


def test_heat_is_where_attention_is_and_the_rest_is_grey():
    grey = Image.new("RGB", (60, 40), (120, 120, 120))
    attention = np.zeros((4, 6))
    attention[1, 4] = 1
    found = np.asarray(overlay(grey, attention.tolist())).astype(int)
    saturation = found.max(axis=2) - found.min(axis=2)
    row, column = np.unravel_index(saturation.argmax(), saturation.shape)
    assert (row // 10, column // 10) == (1, 4)
    assert saturation[30:, :20].max() == 0


def test_flat_and_broken_attention_leave_the_image_alone():
    image = Image.new("RGB", (20, 20), (90, 90, 90))
    for attention in ([[0.3, 0.3]], [[float("nan")]]):
        assert set(np.asarray(overlay(image, attention)).ravel().tolist()) == {90}


def test_images_keep_their_shape():
    image = Image.new("RGB", (1000, 500))
    assert opened(photo_uri(image)).size == (480, 240)
    assert opened(attention_uri(image, [[0.0, 1.0]])).size == (176, 88)


def test_matrices_in_their_order(tmp_path):
    found = cooccurrence(two_runs(tmp_path))
    assert [m["title"] for m in found["matrices"]] == ["Statistics", "Learned, without its loss", "Learned (IST)"]
    assert found["run"] == "HST"


def test_no_examples_no_cards(tmp_path):
    runs = read_runs([write_run(tmp_path / "a")])
    assert example_cards(runs) == []
    assert cooccurrence(runs) is None


def test_a_missing_example_image_is_named(tmp_path):
    run = write_examples(write_run(tmp_path / "a"))
    (run / "examples" / "1.png").unlink()
    with pytest.raises(UserError, match=r"1\.png: there is no such image"):
        example_cards(read_runs([run]))
