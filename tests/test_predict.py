import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

import fewtags
from fewtags.errors import UserError
from fewtags.predict import image_files, load, prediction_table, write_predictions
from fewtags.training.folder import RunFolder
from tests.conftest import COLOURS, TINY


def test_five_lines_of_python(trained, colours):
    tagger = fewtags.load(trained)
    (tags,) = tagger.predict([colours / "images" / "000.png"], top=2)
    assert len(tags) == 2
    assert tags[0].probability >= tags[1].probability
    assert {tag.category for tag in tags} <= set(COLOURS)


def test_paths_and_opened_images_give_the_same(trained, colours):
    tagger = fewtags.load(trained)
    path = colours / "images" / "001.png"
    assert np.array_equal(tagger.probabilities([path]), tagger.probabilities([Image.open(path)]))


def test_batches_do_not_matter(trained, colours):
    tagger = fewtags.load(trained)
    paths = sorted((colours / "images").iterdir())[:20]
    alone = np.concatenate([tagger.probabilities([path]) for path in paths])
    assert np.allclose(tagger.probabilities(paths), alone, atol=1e-5)


def test_each_category_is_decided_by_its_own_threshold(trained):
    tagger = fewtags.load(trained)
    tagger.labels.decision_thresholds = [0.9, 0.1, 0.1, 0.9]
    tags = tagger.tags(np.array([0.5, 0.2, 0.05, 0.95]))
    assert [tag.category for tag in tags] == ["yellow", "green"]
    assert [tag.category for tag in tagger.tags(np.array([0.5, 0.2, 0.05, 0.95]), threshold=0.4)] == [
        "yellow",
        "red",
    ]
    assert len(tagger.tags(np.array([0.5, 0.2, 0.05, 0.95]), top=3)) == 3


def test_decision_thresholds_come_from_held_out_labels(trained):
    labels = RunFolder(trained).labels()
    assert "held out" in labels.decision_thresholds_from
    assert len(labels.decision_thresholds) == len(COLOURS)


def test_without_holdout_the_decision_is_at_one_half(colours, tmp_path):
    run = fewtags.train(colours, out=tmp_path / "run", method="plain", holdout=0.0, **TINY)
    assert RunFolder(run).labels().decision_thresholds == [0.5] * len(COLOURS)


def test_nothing_to_predict(trained):
    assert fewtags.load(trained).predict([]) == []


def test_a_damaged_model_is_named(trained, tmp_path):
    copy = copied(trained, tmp_path)
    (copy / "model.safetensors").write_bytes(b"nonsense")
    with pytest.raises(UserError, match="not a safetensors file"):
        load(copy)


def test_weights_of_another_model_are_refused(trained, tmp_path):
    copy = copied(trained, tmp_path)
    tensors = load_file(copy / "model.safetensors")
    tensors["method.tagger.classifier.rows"] = torch.zeros(9, 9)
    save_file(tensors, copy / "model.safetensors")
    with pytest.raises(UserError, match="do not fit"):
        load(copy)


def test_damaged_labels_are_named(trained, tmp_path):
    copy = copied(trained, tmp_path)
    (copy / "labels.json").write_text("{}")
    with pytest.raises(UserError, match=r"labels\.json"):
        load(copy)


def test_an_unfinished_run_is_named(trained, tmp_path):
    copy = copied(trained, tmp_path)
    (copy / "labels.json").unlink()
    with pytest.raises(UserError, match="has its training finished"):
        load(copy)


def test_a_recipe_with_an_unknown_method_is_refused(trained, tmp_path):
    copy = copied(trained, tmp_path)
    text = (copy / "recipe.yaml").read_text().replace("method: hst", "method: os.system")
    (copy / "recipe.yaml").write_text(text)
    with pytest.raises(UserError, match="does not have"):
        load(copy)


def copied(run, folder):
    import shutil

    return shutil.copytree(run, folder / "copy")


def test_predictions_are_written_by_ending(tmp_path):
    table = prediction_table([tmp_path / "a.png"], [[]])
    assert list(table.columns) == ["image", "category", "probability"]
    with pytest.raises(UserError, match=r"write \.csv, \.parquet or \.json"):
        write_predictions(table, tmp_path / "tags.xlsx")


def test_image_files_keep_the_order_and_name_what_is_missing(colours, tmp_path):
    first = colours / "images" / "003.png"
    files = image_files([first, colours / "images"])
    assert files[0] == first
    assert len(files) == 65
    with pytest.raises(UserError, match="no such file"):
        image_files([tmp_path / "gone.png"])
