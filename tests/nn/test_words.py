import sys
import types

import numpy as np
import pytest
import torch

from fewtags.errors import UserError
from fewtags.nn.words import load_words

VECTORS = {"dog": [1.0, 2.0], "traffic": [3.0, 4.0], "light": [5.0, 8.0], "hot": [1.0, 1.0]}


@pytest.fixture
def glove(tmp_path):
    path = tmp_path / "glove.txt"
    lines = [f"{word} {' '.join(map(str, vector))}" for word, vector in VECTORS.items()]
    path.write_text("\n".join(["the 9 9", ". . . 7 7", *lines]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def npz(tmp_path):
    path = tmp_path / "words.npz"
    np.savez(path, names=np.array([*VECTORS, "traffic light"]), vectors=np.array([*VECTORS.values(), [0.0, 1.0]]))
    return path


def test_single_words_and_means_from_glove(glove):
    words = load_words(str(glove), ["Dog", "traffic light", "hot_dog"])
    assert words.dtype == np.float32
    assert words.tolist() == [[1, 2], [4, 6], [1, 1.5]]


def test_sum_pooling(glove):
    assert load_words(str(glove), ["traffic light"], "sum").tolist() == [[8, 12]]


def test_a_repeated_word_counts_twice(glove):
    assert load_words(str(glove), ["dog dog hot"], "sum").tolist() == [[3, 5]]


def test_full_names_are_used_as_they_are(npz):
    words = load_words(str(npz), ["traffic light", "Traffic-Light", "hot dog"])
    assert words.tolist() == [[0, 1], [0, 1], [1, 1.5]]


def test_full_names_joined_in_a_text_file(tmp_path):
    path = tmp_path / "w.txt"
    path.write_text("2 3\ntraffic_light 1 2 3\ndog 4 5 6\n")  # with word2vec's first line
    assert load_words(str(path), ["Traffic light", "dog"]).tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize("source", ["glove", "npz"])
def test_words_without_a_vector_are_named_with_the_options(source, request):
    path = request.getfixturevalue(source)
    with pytest.raises(UserError) as caught:
        load_words(str(path), ["dog", "zebra", "hot cocoa", "--"])
    message = str(caught.value)
    assert "'zebra'" in message
    assert "'cocoa' of 'hot cocoa'" in message
    assert "no word in it of '--'" in message
    assert "'dog'" not in message
    for option in (".npz", "GloVe", "hub:NAME", "learned"):
        assert option in message


def test_at_most_twenty_missing_words_are_listed(glove):
    with pytest.raises(UserError, match="and 10 more"):
        load_words(str(glove), [f"unheard{n}" for n in range(30)])


def test_no_such_file(tmp_path):
    with pytest.raises(UserError, match=r"nowhere\.txt: no such file"):
        load_words(str(tmp_path / "nowhere.txt"), ["dog"])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite(tmp_path, bad):
    path = tmp_path / "w.npz"
    np.savez(path, names=np.array(["dog", "cat"]), vectors=np.array([[1.0, 2.0], [bad, 1.0]]))
    with pytest.raises(UserError, match="'cat' has values that are not finite"):
        load_words(str(path), ["dog", "cat"])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"names": np.array(["a"])}, "needs arrays `names` and `vectors`, has 'names'"),
        ({"names": np.array(["a"]), "vectors": np.ones((2, 3))}, "must be n names, n rows of numbers"),
        ({"names": np.array(["a", "a"]), "vectors": np.ones((2, 3))}, "`names` has 'a' more than once"),
        ({"names": np.array(["a"], dtype=object), "vectors": np.ones((1, 3))}, "not readable as .npz"),
    ],
)
def test_bad_npz(tmp_path, arrays, message):
    path = tmp_path / "w.npz"
    np.savez(path, **arrays)
    with pytest.raises(UserError) as caught:
        load_words(str(path), ["a"])
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


def test_an_npz_that_is_none(tmp_path):
    path = tmp_path / "w.npz"
    path.write_text("hello")
    with pytest.raises(UserError, match=r"not readable as \.npz"):
        load_words(str(path), ["a"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"dog 1 2\ncat 1 x\n", "row 2 \\('cat'\\): could not convert"),
        (b"dog 1 2\ncat 1\n", "row 2 \\('cat'\\) has 1 numbers, others 2"),
        (b"dog 1 2\ncat\n", "row 2 \\('cat'\\) has no numbers"),
        (b"dog 1 2\nc\xff\xfe 1 2\n", "not a UTF-8 text file"),
    ],
)
def test_bad_text_files(tmp_path, text, message):
    path = tmp_path / "w.txt"
    path.write_bytes(text)
    with pytest.raises(UserError, match=message):
        load_words(str(path), ["dog", "cat"])


class _Tokens(dict):
    pass


def _fake_transformers(model):
    def tokenize(names, padding, return_tensors):
        width = max(len(name.split()) for name in names)
        mask = torch.tensor([[int(k < len(name.split())) for k in range(width)] for name in names])
        return _Tokens(input_ids=mask * 3, attention_mask=mask)

    loader = types.SimpleNamespace
    module = types.ModuleType("transformers")
    module.AutoTokenizer = loader(from_pretrained=lambda name, trust_remote_code: tokenize)
    module.AutoModel = loader(from_pretrained=model)
    return module


class _Encoder(torch.nn.Module):
    def forward(self, input_ids, attention_mask):
        states = torch.arange(1.0, input_ids.shape[1] + 1).expand(len(input_ids), -1).unsqueeze(-1).repeat(1, 1, 2)
        return types.SimpleNamespace(last_hidden_state=states)


class _ImageTextEncoder(torch.nn.Module):
    def get_text_features(self, input_ids, attention_mask):
        return attention_mask.sum(1, keepdim=True) * torch.ones(1, 3)


def test_a_text_encoder_averages_its_states_over_real_tokens(monkeypatch):
    monkeypatch.setitem(
        sys.modules, "transformers", _fake_transformers(lambda name, trust_remote_code: _Encoder())
    )
    assert load_words("hub:some/model", ["dog", "traffic_light"]).tolist() == [[1, 1], [1.5, 1.5]]


def test_an_image_text_encoder_gives_its_text_features(monkeypatch):
    fake = _fake_transformers(lambda name, trust_remote_code: _ImageTextEncoder())
    monkeypatch.setitem(sys.modules, "transformers", fake)
    assert load_words("hub:some/clip", ["dog", "traffic light"]).tolist() == [[1, 1, 1], [2, 2, 2]]


def test_without_transformers_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(UserError, match=r"pip install 'fewtags\[hub\]'"):
        load_words("hub:some/model", ["dog"])


def test_an_unreachable_encoder(monkeypatch):
    def fail(name, trust_remote_code):
        raise OSError("no route")

    monkeypatch.setitem(sys.modules, "transformers", _fake_transformers(fail))
    with pytest.raises(UserError, match=r"hub:some/model: could not be loaded .* no route"):
        load_words("hub:some/model", ["dog"])
