"""Image files: every mode becomes upright RGB; every bad file is one error that names it."""

import os

import numpy as np
import pytest
from PIL import Image

from fewtags.errors import UserError
from fewtags.images.loading import JPEG_SIDE, FolderImages, as_rgb, list_images


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "LA", "P", "1", "CMYK"])
def test_every_mode_becomes_rgb(tmp_path, mode):
    name = "a.tif" if mode == "CMYK" else "a.png"
    Image.fromarray(noise(9, 7, 3)).convert(mode).save(tmp_path / name)
    opened = FolderImages(tmp_path).open(name)
    assert (opened.mode, opened.size) == ("RGB", (7, 9))


def test_transparent_becomes_white():
    clear = Image.new("RGBA", (2, 2), (10, 20, 30, 0))
    assert as_rgb(clear).getpixel((0, 0)) == (255, 255, 255)
    palette = Image.new("P", (2, 2), 0)
    palette.info["transparency"] = 0
    assert as_rgb(palette).getpixel((0, 0)) == (255, 255, 255)


def test_sixteen_bit_grey_is_scaled_not_cut_off(tmp_path):
    ramp = np.linspace(0, 65535, 16).astype(np.uint16).reshape(4, 4)
    Image.fromarray(ramp).save(tmp_path / "a.png")
    opened = np.asarray(FolderImages(tmp_path).open("a.png"))[..., 0]
    np.testing.assert_allclose(opened.ravel(), np.linspace(0, 255, 16), atol=1)


def test_floating_point_grey_between_0_and_1():
    image = Image.fromarray(np.array([[0.0, 0.5], [1.0, 0.25]], dtype=np.float32))
    assert np.asarray(as_rgb(image))[..., 0].tolist() == [[0, 128], [255, 64]]


def test_eight_bit_values_in_a_wide_mode_stay():
    image = Image.fromarray(np.array([[0, 200], [255, 7]], dtype=np.int32))
    assert np.asarray(as_rgb(image))[..., 0].tolist() == [[0, 200], [255, 7]]


def test_exif_orientation_is_applied(tmp_path):
    image = Image.new("RGB", (8, 4), "black")
    exif = image.getexif()
    exif[0x0112] = 6  # turn a quarter clockwise to view
    image.save(tmp_path / "a.jpg", exif=exif)
    assert FolderImages(tmp_path).open("a.jpg").size == (4, 8)


def test_only_much_larger_jpegs_are_decoded_smaller(tmp_path):
    sizes = {
        "big.jpg": (4 * JPEG_SIDE + 8, 2 * JPEG_SIDE),
        "good.jpg": (2 * JPEG_SIDE - 1, 1500),
        "big.png": (2100, 2100),
    }
    for name, size in sizes.items():
        Image.new("RGB", size, "red").save(tmp_path / name)
    source = FolderImages(tmp_path)
    assert source.open("big.jpg").size == (2 * JPEG_SIDE + 4, JPEG_SIDE)
    assert source.open("good.jpg").size == sizes["good.jpg"]
    assert source.open("big.png").size == sizes["big.png"]


def test_bad_files_are_named(tmp_path):
    Image.fromarray(noise(64, 64, 3)).save(tmp_path / "cut.jpg")
    whole = (tmp_path / "cut.jpg").read_bytes()
    (tmp_path / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.png").write_text("not an image")
    (tmp_path / "empty.jpg").write_bytes(b"")
    (tmp_path / "folder.jpg").mkdir()
    source = FolderImages(tmp_path)
    for name, message in [
        ("cut.jpg", r"cut\.jpg: the image cannot be read .* damaged"),
        ("text.png", r"text\.png: not an image"),
        ("empty.jpg", r"empty\.jpg: not an image"),
        ("missing.jpg", r"missing\.jpg: there is no such image"),
        ("folder.jpg", r"folder\.jpg: this is a folder"),
    ]:
        with pytest.raises(UserError, match=message):
            source.open(name)
    with pytest.raises(UserError, match=r"missing\.jpg: there is no such image"):
        source.stamp("missing.jpg")


def test_a_picture_too_large_to_be_honest_is_refused(tmp_path, monkeypatch):
    Image.new("L", (100, 100)).save(tmp_path / "bomb.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    with pytest.raises(UserError, match=r"bomb\.png: the image cannot be read"):
        FolderImages(tmp_path).open("bomb.png")


def test_the_stamp_changes_with_the_content(tmp_path):
    path = tmp_path / "a.png"
    Image.new("RGB", (4, 4)).save(path)
    source = FolderImages(tmp_path)
    first = source.stamp("a.png")
    assert source.stamp("a.png") == first
    os.utime(path, ns=(1, 1))
    assert source.stamp("a.png") != first


def test_list_images(tmp_path):
    for name in ["b/2.JPG", "b/10.jpeg", "a.png", "notes.txt", ".hidden.png", ".cache/x.png"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "folder.png").mkdir()
    assert list_images(tmp_path) == ["a.png", "b/10.jpeg", "b/2.JPG"]
