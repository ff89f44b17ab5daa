"""What the network sees: sizes, normalisation, and views that can be repeated."""

import numpy as np
import pytest
import torch
from PIL import Image

from fewtags.images.transforms import RandomView, cached_view, evaluation_transform, scaled, training_transform

MEAN, STD = (0.5, 0.4, 0.3), (0.5, 0.25, 0.2)
SIDES = (512, 448, 384, 320, 256)


@pytest.fixture
def image() -> Image.Image:
    pixels = np.random.default_rng(0).integers(0, 256, (60, 90, 3), dtype=np.uint8)
    return Image.fromarray(pixels).resize((90, 60))


def test_evaluation_resizes_to_a_square_and_normalises(image):
    seen = evaluation_transform(32, MEAN, STD)(image)
    assert (seen.shape, seen.dtype) == ((3, 32, 32), torch.float32)
    resized = np.asarray(image.resize((32, 32), Image.Resampling.BILINEAR)) / 255
    expected = ((resized - MEAN) / STD).transpose(2, 0, 1)
    np.testing.assert_allclose(seen.numpy(), expected, atol=1e-5)


def test_lengths_scale_with_the_network():
    assert [scaled(side, 448) for side in SIDES] == list(SIDES)
    assert [scaled(side, 224) for side in SIDES] == [256, 224, 192, 160, 128]
    view = RandomView(112, 512, SIDES)
    assert (view.resized, view.sides) == (128, [128, 112, 96, 80, 64])
    assert RandomView(112, 448, SIDES).sides[0] == 112  # never larger than what it is cut from


def test_training_views_differ_and_follow_the_global_seed(image):
    transform = training_transform(32, 512, SIDES, MEAN, STD)
    torch.manual_seed(3)
    first, second = transform(image), transform(image)
    torch.manual_seed(3)
    assert torch.equal(transform(image), first)
    assert first.shape == (3, 32, 32)
    assert not torch.equal(first, second)


def test_training_uses_every_side_place_and_mirror():
    """On an image whose value is its column, a view shows which span was cut out and whether it was mirrored."""
    ramp = Image.fromarray(np.tile(np.arange(256, dtype=np.uint8)[None, :, None], (256, 1, 3)))
    torch.manual_seed(0)
    view = RandomView(224, 512, SIDES)
    spans, mirrored = [], []
    for _ in range(200):
        columns = np.asarray(view(ramp), dtype=float)[0, :, 0]
        spans.append(abs(columns[-1] - columns[0]) * 224 / 223)
        mirrored.append(columns[0] > columns[-1])
    for side in (256, 224, 192, 160, 128):
        assert 0.1 < np.mean(np.abs(np.array(spans) - side) < 3) < 0.3, side
    assert 0.35 < np.mean(mirrored) < 0.65


def views(image: Image.Image, view: str, index: int, seed: int) -> torch.Tensor:
    return cached_view(view, index, seed, 32, MEAN, STD, 512, SIDES)(image)


def test_cached_views_can_be_repeated_and_do_not_touch_the_global_seed(image):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    for view in ("plain", "flip", "crop1", "crop4"):
        assert torch.equal(views(image, view, 5, 0), views(image, view, 5, 0))
    assert torch.equal(torch.get_rng_state(), before)


def test_plain_is_what_evaluation_sees_and_flip_mirrors_it(image):
    plain = evaluation_transform(32, MEAN, STD)(image)
    assert torch.equal(views(image, "plain", 5, 0), plain)
    torch.testing.assert_close(views(image, "flip", 5, 0), plain.flip(-1), atol=0.03, rtol=0)


def test_crops_differ_by_view_image_and_seed(image):
    seen = [views(image, view, index, seed) for view, index, seed in
            [("crop1", 0, 0), ("crop2", 0, 0), ("crop1", 1, 0), ("crop1", 0, 1)]]  # fmt: skip
    for i, one in enumerate(seen):
        assert not any(torch.equal(one, other) for other in seen[:i])


def test_unknown_view(image):
    with pytest.raises(ValueError, match="no view 'crop9'"):
        views(image, "crop9", 0, 0)
