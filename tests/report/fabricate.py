"""Made-up run folders: everything a report can show, without training anything."""

import json
from pathlib import Path

import numpy as np
import yaml
from PIL import Image, ImageDraw

CATEGORIES = ["person", "dog", "car", "traffic light", "umbrella", "cup", "laptop", "dining table"]


def write_run(folder: Path, method="hst", mean_ap=61.2, known=0.1, seed=0, categories=CATEGORIES, **extra) -> Path:
    """A run folder with metrics, recipe, labels and, for hst, thresholds and pseudo labels per epoch."""
    random = np.random.default_rng([seed, len(method)])
    folder.mkdir(parents=True)
    aps = np.clip(mean_ap + 18 * np.random.default_rng(5).normal(size=len(categories)), 2, 98)
    aps = np.clip(aps + 3 * random.normal(size=len(categories)), 1, 99)
    metrics = {"mAP": mean_ap, "mAP_voc": mean_ap + 1.1, "method": method, "known": known, "seed": seed}
    for name in ("OP", "OR", "OF1", "CP", "CR", "CF1"):
        metrics[name] = mean_ap - 2 + random.normal()
        metrics[f"{name}_top3"] = mean_ap - 6 + random.normal()
    metrics |= {
        "per_category": dict(zip(categories, aps.tolist(), strict=True)),
        "categories_without_positives": [],
    }
    metrics |= {"data": "scenes", "seconds": 83.4} | extra
    (folder / "metrics.json").write_text(json.dumps(metrics))
    recipe = {"method": method, "known": known, "seed": seed, "backbone": "lite0", "epochs": 12, "words": None}
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe | {"views": ["plain", "flip"]}))
    labels = {"categories": list(categories), "decision_thresholds": [0.5] * len(categories)}
    (folder / "labels.json").write_text(json.dumps(labels))
    (folder / "history.csv").write_text(history(method, random))
    return folder


def history(method, random, epochs=12, warmup=3) -> str:
    lines = []
    for epoch in range(epochs):
        row = {"epoch": epoch + 1, "loss/known": 0.6 * 0.85**epoch + 0.01 * random.random(), "seconds": 6.1}
        if method == "hst":
            grown = max(0, epoch - warmup + 1)
            intra, cross = round(900 * (1 - 0.8**grown)), round(2100 * (1 - 0.75**grown))
            row |= {
                "loss/intra": 0.4 * 0.9**epoch,
                "loss/cross": 0.9 * 0.95**epoch,
                "threshold/intra": 0.52 + 0.48 * 0.6**epoch,
                "threshold/cross": 0.66 + 0.34 * 0.7**epoch,
                "pseudo/intra_made": intra,
                "pseudo/intra_right": round(intra * (0.62 + 0.015 * epoch)),
                "pseudo/cross_made": cross,
                "pseudo/cross_right": round(cross * (0.7 + 0.012 * epoch)),
                "pseudo/reachable": 1800,
                "pseudo/hidden_present": 6400,
            }
        lines.append(row)
    names = list(lines[0])
    return "\n".join([",".join(names), *(",".join(str(row[name]) for name in names) for row in lines)]) + "\n"


def write_examples(run: Path, pictures=None, filled=True, attention=True, truth=True) -> Path:
    """Example images with labels, pseudo labels, predictions and attention; drawn unless pictures are given."""
    folder = run / "examples"
    folder.mkdir()
    images = []
    for index in range(3 if pictures is None else len(pictures)):
        (drawing(index) if pictures is None else pictures[index]).save(folder / f"{index}.png")
        images.append(example(index, filled, attention, truth))
    matrices = {
        name: matrix(scale) for name, scale in [("statistical", 0.5), ("ist_without_loss", 0.2), ("ist", 0.9)]
    }
    found = {"image": "0.png", "categories": CATEGORIES, "matrices": matrices}
    (folder / "examples.json").write_text(
        json.dumps({"images": images, "cooccurrence": found if filled else None})
    )
    return run


def example(index, filled, attention, truth):
    fills = [
        {"category": "cup", "module": "intra", "evidence": 0.93, "right": True if truth else None},
        {"category": "cup", "module": "cross", "evidence": 0.81, "right": True if truth else None},
        {"category": "laptop", "module": "cross", "evidence": 0.77, "right": False if truth else None},
    ]
    maps = [
        {"category": category, "kind": kind, "map": blob(index + shift, 7 if kind == "sd" else 14)}
        for category, shift in (("person", 0), ("cup", 3))
        for kind in ("sd", "sa")
    ]
    return {
        "file": f"{index}.png",
        "name": f"street {index}",
        "known_present": ["person"],
        "known_absent": ["car", "traffic light"],
        "hidden_present": ["cup", "dining table"] if truth else None,
        "filled": fills if filled else [],
        "predicted": [
            {"category": name, "probability": p}
            for name, p in [("cup", 0.55), ("person", 0.97), ("laptop", 0.41), ("dining table", 0.33)]
        ],
        "attention": maps if attention else [],
    }


def drawing(index):
    image = Image.new("RGB", (160, 120), (200 - 40 * index, 205, 170 + 30 * index))
    pen = ImageDraw.Draw(image)
    pen.ellipse((20 + 25 * index, 30, 70 + 25 * index, 80), fill=(230, 120, 40))
    pen.rectangle((95, 50, 140, 110), fill=(40, 90, 160))
    return image


def blob(seed, side):
    x, y = np.random.default_rng(seed).random(2) * side
    rows, columns = np.mgrid[:side, :side]
    return np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / (side / 3) ** 2).round(4).tolist()


def matrix(scale):
    values = scale * np.random.default_rng(int(10 * scale)).random((len(CATEGORIES), len(CATEGORIES)))
    np.fill_diagonal(values, 0)
    return values.round(3).tolist()
