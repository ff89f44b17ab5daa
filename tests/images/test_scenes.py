"""The embedded set: deterministic, labels that are really drawn, the same rates at every correlation."""

import time
from pathlib import Path

import numpy as np
import pytest

from fewtags.errors import UserError
from fewtags.images.glyphs import SKIN_TONES, colour_matrix, master, recoloured_skin, sprite
from fewtags.images.picture import draw_picture
from fewtags.images.scenes import SceneImages, parsed_name, scenes
from fewtags.images.themes import (
    CATEGORIES,
    CLUTTER,
    NAMES,
    SCENES,
    marginal_rates,
    mixed_rates,
    scene_shares,
)

MANY = 8000


@pytest.fixture(scope="module")
def present() -> dict[float, np.ndarray]:
    return {c: scenes(train=MANY, test=0, seed=5, correlation=c)[0].values > 0 for c in (0.0, 0.5, 1.0)}


def test_table_and_names():
    table, images = scenes(train=3, test=2)
    assert table.images == (
        *(f"scenes/train/{i:06d}" for i in range(3)),
        "scenes/test/000000",
        "scenes/test/000001",
    )
    assert table.splits == ("train",) * 3 + ("test",) * 2
    assert table.known.all()
    assert len(table.categories) == 40
    assert images.open("scenes/test/000001").size == (160, 160)
    assert images.open("scenes/test/000001").mode == "RGB"


def test_an_image_depends_on_seed_split_and_index_alone():
    small, large = scenes(train=5, test=1, seed=2), scenes(train=50, test=9, seed=2)
    assert (small[0].values[:5] == large[0].values[:5]).all()
    name = "scenes/train/000003"
    first = np.asarray(small[1].open(name))
    large[1].open("scenes/train/000040")  # what was drawn before makes no difference
    assert (np.asarray(large[1].open(name)) == first).all()
    for other in ("scenes/test/000003", "scenes/train/000004"):
        assert (np.asarray(small[1].open(other)) != first).any()
    assert (np.asarray(scenes(train=5, seed=3)[1].open(name)) != first).any()


def test_train_and_test_are_different_streams():
    table, _ = scenes(train=200, test=200)
    assert (table.values[:200] != table.values[200:]).any(axis=1).mean() > 0.9


def test_labels_do_not_depend_on_the_size():
    assert (scenes(train=50, size=64)[0].values == scenes(train=50, size=224)[0].values).all()


@pytest.mark.parametrize("correlation", [0.0, 1.0])
def test_labels_are_what_was_drawn_and_stays_visible(correlation):
    table, images = scenes(train=60, test=0, seed=1, correlation=correlation)
    visible = []
    for name, values in zip(table.images, table.values, strict=True):
        objects = [thing for thing in images.draw(name)[1] if thing.category is not None]
        assert {thing.category for thing in objects} == {c for c, v in zip(NAMES, values, strict=True) if v > 0}
        assert all(thing.glyph in CATEGORIES[thing.category].glyphs for thing in objects)
        visible += [thing.visible for thing in objects]
    assert np.mean(np.array(visible) >= 0.49) > 0.99


def test_what_is_placed_changes_the_pixels_in_its_box():
    for name in NAMES:
        drawn = [draw_picture(SCENES["sofa"], names, 160, np.random.default_rng(0)) for names in ([], [name])]
        assert not any(thing.category for thing in drawn[0][1])
        left, top, right, bottom = next(thing.box for thing in drawn[1][1] if thing.category)
        box = (max(left, 0), max(top, 0), min(right, 160), min(bottom, 160))
        before, after = (np.asarray(image.crop(box), dtype=int) for image, _ in drawn)
        assert np.abs(before - after).mean() > 5, name


def test_rates_are_the_same_at_every_correlation(present):
    expected = marginal_rates()
    error = np.sqrt(expected * (1 - expected) / MANY)
    for values in present.values():
        assert (np.abs(values.mean(axis=0) - expected) < 4 * error).all()
    for correlation in (0.0, 0.3, 1.0):
        np.testing.assert_allclose(scene_shares() @ mixed_rates(correlation), expected)


def chi_square(values: np.ndarray) -> np.ndarray:
    """Per pair n·φ²: about chi-square with one degree of freedom if the two are independent."""
    squared = np.corrcoef(values.T.astype(float)) ** 2
    return len(values) * squared[np.triu_indices(len(squared), 1)]


def test_without_correlation_pairs_are_independent(present):
    statistic = chi_square(present[0.0])
    assert abs(statistic.mean() - 1) < 0.2  # 780 pairs: standard error 0.05
    assert np.mean(statistic > 3.84) < 0.09
    assert chi_square(present[0.5]).mean() > 5
    assert chi_square(present[1.0]).mean() > chi_square(present[0.5]).mean()


def test_statistics_of_the_set(present):
    values = present[1.0]
    rates = dict(zip(NAMES, values.mean(axis=0), strict=True))
    assert 3.5 < values.sum(axis=1).mean() < 4.5
    assert rates["person"] > 0.4
    assert 0.015 < min(rates.values()) < 0.035

    def given(condition: str, then: str) -> float:
        return values[values[:, NAMES.index(condition)], NAMES.index(then)].mean()

    assert 0.85 < given("keyboard", "mouse") < 0.97
    assert 0.7 < given("fork", "knife") < 0.9
    assert 0.7 < given("traffic light", "car") < 0.9
    assert given("laptop", "mouse") < 0.5  # the workstation's certainty does not carry over to the café


def test_tables_are_consistent():
    assert len(NAMES) == 40
    for scene in SCENES.values():
        assert set(scene.objects) <= set(NAMES)
        assert scene.theme in CLUTTER
    category_glyphs = "".join(category.glyphs for category in CATEGORIES.values())
    assert len(set(category_glyphs)) == len(category_glyphs)
    assert not set(category_glyphs) & set("".join(CLUTTER.values()))


def test_the_font_has_every_glyph():
    nothing = np.asarray(master("\U0010fffd", 48))
    for glyph in "".join(c.glyphs for c in CATEGORIES.values()) + "".join(CLUTTER.values()):
        drawn = np.asarray(master(glyph, 48))
        assert drawn.shape != nothing.shape or (drawn != nothing).any(), glyph


def test_fork_and_knife_are_halves():
    both, fork, knife = (master(glyph, 96) for glyph in "🍴⑂ⵏ")
    assert fork.width < both.width / 2
    assert knife.width < both.width / 2
    assert np.asarray(fork.resize((20, 60))).tolist() != np.asarray(knife.resize((20, 60))).tolist()


def test_skin_tones_replace_the_yellow_only():
    upright = master("🧑", 96).convert("RGBA")
    toned = np.asarray(recoloured_skin(upright, SKIN_TONES[4]), dtype=int)
    pixels = np.asarray(upright, dtype=int)
    skin = (np.abs(pixels[..., :3] - [252, 234, 43]).sum(axis=-1) < 20) & (pixels[..., 3] > 250)
    shirt = (pixels[..., 2] > 200) & (pixels[..., 3] > 250)
    assert skin.sum() > 100
    assert np.abs(toned[skin][:, :3] - SKIN_TONES[4]).max() < 12
    assert (toned[shirt] == pixels[shirt]).all()


def test_colours_keep_black_and_grey():
    matrix = colour_matrix(2.0, 0.7, np.ones(3))
    np.testing.assert_allclose(matrix @ np.full(3, 90.0), np.full(3, 90.0))
    np.testing.assert_allclose(colour_matrix(0, 1, np.ones(3)), np.eye(3), atol=1e-12)
    turned = colour_matrix(2 * np.pi / 3, 1, np.ones(3)) @ np.array([1.0, 0, 0])
    np.testing.assert_allclose(turned, [0, 1, 0], atol=1e-12)


def test_a_sprite_has_the_size_asked_for_and_can_be_mirrored():
    plain, mirrored = (sprite("🚗", 50, 0, flip, np.eye(3)) for flip in (False, True))
    assert max(plain.shape[1:]) in (50, 51, 52)
    assert np.abs(plain - mirrored[:, :, ::-1]).mean() < np.abs(plain - mirrored).mean() / 20
    turned = sprite("🚗", 50, 90, False, np.eye(3))
    assert turned.shape[1] > turned.shape[2]


def test_it_is_fast():
    table, images = scenes(train=60, test=0)
    for name in table.images:
        images.open(name)
    start = time.process_time()
    for name in table.images:
        images.open(name)
    assert (time.process_time() - start) / len(table) < 0.03  # about 7 ms on one core; slack for busy machines


def test_the_stamp_names_what_decides_the_picture():
    stamps = {
        source.stamp("scenes/train/000000")
        for source in (
            SceneImages(0, 160, 1.0),
            SceneImages(1, 160, 1.0),
            SceneImages(0, 96, 1.0),
            SceneImages(0, 160, 0.5),
        )
    }
    assert len(stamps) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"train": -1}, "train=-1"),
        ({"train": 0, "test": 0}, "leave no images"),
        ({"seed": -2}, "seed=-2"),
        ({"size": 8}, "size=8"),
        ({"correlation": 1.5}, "correlation=1.5"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(UserError, match=message):
        scenes(**options)


@pytest.mark.parametrize("name", ["000001", "scenes/valid/000001", "scenes/train/x", "photos/train/000001"])
def test_unknown_names(name):
    with pytest.raises(UserError, match="no image"):
        parsed_name(name)


def test_the_documented_rates_are_the_generators():
    page = (Path(__file__).parents[2] / "docs" / "scenes.md").read_text(encoding="utf-8")
    for name, rate in zip(NAMES, marginal_rates(), strict=True):
        assert f"| {name} | {100 * rate:.1f} | {CATEGORIES[name].size} | {len(CATEGORIES[name].glyphs)} |" in page
    assert "CC BY-SA 4.0" in page
