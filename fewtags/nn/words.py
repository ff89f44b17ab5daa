"""Word vectors of category names (SPEC 1): from an .npz, a GloVe text file, or a text encoder on the hub."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fewtags.errors import Problems, UserError

Pooling = Literal["mean", "sum"]
HUB = "hub:"
OPTIONS = (
    "add their vectors to the file, name the categories by words it has, use another source (an .npz with "
    "`names` and `vectors`, a GloVe text file, hub:NAME), or give no words: embeddings are then learned"
)


def load_words(spec: str, categories: Sequence[str], pooling: Pooling = "mean") -> np.ndarray:
    """`spec` (FILE.npz, a GloVe text file, or hub:NAME) and category names → vectors (C, E) float32.

    A vector under a category's full name is used as it is; else the vectors of the name's words are pooled. A
    word without a vector is an error, never a zero vector.
    """
    if spec.startswith(HUB):
        vectors = _encoded(spec.removeprefix(HUB), categories)
    else:
        vectors = _looked_up(_read(Path(spec), categories), categories, pooling, spec)
    bad = [name for name, vector in zip(categories, vectors, strict=True) if not np.isfinite(vector).all()]
    if bad:
        raise UserError(f"{spec}: the vector of {_named(bad)} has values that are not finite numbers")
    return vectors


def name_forms(name: str) -> list[str]:
    """How a file may spell a full name, best first: as it is, in lower case, joined by a space, _ or -."""
    lower = name.lower()
    return list(dict.fromkeys([name, lower, *(joint.join(name_words(lower)) for joint in " _-")]))


def name_words(name: str) -> list[str]:
    """The words of a name: "traffic_light" → traffic, light."""
    return [word for word in re.split(r"[\s_\-/,()]+", name) if word]


def _looked_up(
    table: Mapping[str, np.ndarray], categories: Sequence[str], pooling: Pooling, spec: str
) -> np.ndarray:
    problems = Problems(f"{spec}: words without a vector ({OPTIONS})")
    vectors = []
    for name in categories:
        own = next((table[form] for form in name_forms(name) if form in table), None)
        vectors.append(own if own is not None else _pooled(table, name, pooling, problems))
    problems.raise_if_any()
    return np.stack([vector for vector in vectors if vector is not None]).astype(np.float32)


def _pooled(table: Mapping[str, np.ndarray], name: str, pooling: Pooling, problems: Problems) -> np.ndarray | None:
    words = name_words(name)
    found = [vector for vector in (_word_vector(table, word) for word in words) if vector is not None]
    missing = [word for word in words if _word_vector(table, word) is None]
    if missing or not words:
        what = ", ".join(repr(word) for word in missing) or "no word in it"
        problems.add(repr(name) if missing == [name] else f"{what} of {name!r}")
        return None
    return np.mean(found, axis=0) if pooling == "mean" else np.sum(found, axis=0)


def _word_vector(table: Mapping[str, np.ndarray], word: str) -> np.ndarray | None:
    return table.get(word, table.get(word.lower()))


def _read(path: Path, categories: Sequence[str]) -> dict[str, np.ndarray]:
    if not path.is_file():
        raise UserError(f"{path}: no such file of word vectors")
    if zipfile.is_zipfile(path) or path.suffix == ".npz":
        return _read_npz(path)
    return _read_text(path, categories)


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except (ValueError, OSError, zipfile.BadZipFile) as problem:
        raise UserError(f"{path}: not readable as .npz of plain arrays: {problem}") from problem
    if not {"names", "vectors"} <= set(arrays):
        raise UserError(f"{path}: needs arrays `names` and `vectors`, has {_named(sorted(arrays)) or 'none'}")
    names, vectors = arrays["names"], arrays["vectors"]
    if names.ndim != 1 or vectors.ndim != 2 or len(names) != len(vectors) or vectors.dtype.kind not in "fiu":
        raise UserError(
            f"{path}: `names` {names.shape} and `vectors` {vectors.shape} must be n names, n rows of numbers"
        )
    spelled = [str(name) for name in names]
    repeated = sorted({name for name in spelled if spelled.count(name) > 1})
    if repeated:
        raise UserError(f"{path}: `names` has {_named(repeated)} more than once")
    return dict(zip(spelled, vectors, strict=True))


def _read_text(path: Path, categories: Sequence[str]) -> dict[str, np.ndarray]:
    """GloVe's format, `word number number …`; only the lines of words that are needed are parsed."""
    needed = {form for name in categories for form in name_forms(name)}
    needed |= {form for name in categories for word in name_words(name) for form in (word, word.lower())}
    table: dict[str, np.ndarray] = {}
    first_size = None
    for row, word, numbers in _text_rows(path):
        if word in needed and word not in table:
            vector = _numbers(path, row, word, numbers)
            first_size = first_size or len(vector)
            if len(vector) != first_size:
                raise UserError(f"{path}: row {row} ({word!r}) has {len(vector)} numbers, others {first_size}")
            table[word] = vector
    return table


def _text_rows(path: Path) -> Iterator[tuple[int, str, str]]:
    """(row from 1, word, the rest of the line)."""
    try:
        with path.open(encoding="utf-8") as lines:
            for row, line in enumerate(lines, start=1):
                word, _, numbers = line.rstrip().partition(" ")
                if row == 1 and len(numbers.split()) == 1:
                    continue  # word2vec's text format starts with `words size`
                yield row, word, numbers
    except UnicodeDecodeError as problem:
        raise UserError(f"{path}: not a UTF-8 text file of word vectors: {problem}") from problem


def _numbers(path: Path, row: int, word: str, numbers: str) -> np.ndarray:
    try:
        vector = np.array(numbers.split(), dtype=np.float32)
    except ValueError as problem:
        raise UserError(f"{path}: row {row} ({word!r}): {problem}") from problem
    if not len(vector):
        raise UserError(f"{path}: row {row} ({word!r}) has no numbers")
    return vector


def _encoded(name: str, categories: Sequence[str]) -> np.ndarray:
    """Category names through a text encoder of the hub: its text features, or the mean of its last states."""
    try:
        import transformers
    except ImportError as problem:
        raise UserError(f"{HUB}{name} needs the package transformers: pip install 'fewtags[hub]'") from problem
    try:
        tokenizer: Any = transformers.AutoTokenizer.from_pretrained(name, trust_remote_code=False)
        model: Any = transformers.AutoModel.from_pretrained(name, trust_remote_code=False).eval()
    except (OSError, ValueError) as problem:
        raise UserError(f"{HUB}{name}: could not be loaded (wrong name, or no network?): {problem}") from problem
    return _encode(tokenizer, model, categories)


def _encode(tokenizer: Any, model: Any, categories: Sequence[str]) -> np.ndarray:
    import torch

    readable = [" ".join(name_words(name)) or name for name in categories]
    tokens = tokenizer(readable, padding=True, return_tensors="pt")
    with torch.no_grad():
        if hasattr(model, "get_text_features"):
            return model.get_text_features(**tokens).float().numpy()
        states = model(**tokens).last_hidden_state.float()  # (C, tokens, E)
    real = tokens["attention_mask"].unsqueeze(-1).float()
    return ((states * real).sum(1) / real.sum(1)).numpy()


def _named(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names[:20]) + (" …" if len(names) > 20 else "")
