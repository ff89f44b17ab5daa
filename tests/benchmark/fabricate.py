"""Made-up rows of results.csv: a whole sweep, or any part of it, without training anything."""

import numpy as np
import pandas as pd

from fewtags.benchmark.results import COLUMNS, METRICS
from fewtags.methods.variants import VARIANTS

LEVELS = {
    "assume_absent": (-14.0, 3.0),
    "plain": (0.0, 3.0),
    "partial_bce": (0.4, 3.2),
    "asl": (-0.6, 3.5),
    "plain_pl": (1.6, 3.6),
    "curriculum": (-4.0, 9.0),
    "gcn_ml": (-1.2, 30.0),
    "p_gcn": (0.2, 60.0),
    "ssgrl": (1.4, 150.0),
    "kggr": (1.1, 190.0),
    "ssgrl_pl": (2.0, 170.0),
    "sst": (1.8, 240.0),
    "sarb": (1.9, 280.0),
    "hst": (2.6, 260.0),
    "hst_fb": (2.9, 330.0),
}
"""method → points of mAP above plain, training seconds."""
MODULES = {
    **dict.fromkeys(("hst", "hst_fb", "sst"), ("intra", "cross")),
    **dict.fromkeys(("plain_pl", "ssgrl_pl", "curriculum"), ("own",)),
}


def group(*names):
    return [method for method, variant in VARIANTS.items() if variant.group in names]


def row(method, known, seed, data="coco-sample", images=4000, epochs=8, backbone="lite0"):
    """What a run of this cell might have given: the same each time."""
    base = method.partition(".")[0] if method not in LEVELS else method
    gain, seconds = LEVELS.get(base, (0.0, 10.0))
    random = np.random.default_rng([seed, round(100 * known), *map(ord, method)])
    level = 41 + 12 * (known**0.5 - 0.1**0.5) + np.random.default_rng([seed, round(100 * known)]).normal(0, 0.4)
    shift = 0 if method in LEVELS else np.random.default_rng([*map(ord, method)]).normal(-0.8, 0.9)
    score = level + gain * (1.2 - known) + shift + random.normal(0, 0.15) if method != "full_labels" else 57.8
    made = {"data": data, "method": method, "known": 1.0 if method == "full_labels" else known, "seed": seed}
    made |= {name: round(score + place - 4 + random.normal(0, 0.2), 4) for place, name in enumerate(METRICS)}
    made |= {"mAP": round(score, 4), "mAP_voc": round(score + 0.6, 4)}
    made |= {"images": images, "test_images": 4000, "epochs": epochs, "backbone": backbone}
    made |= {"training_seconds": round(seconds * (1 + 0.1 * random.random()), 1), "seconds": round(seconds + 9, 1)}
    made |= {"peak_memory_gib": round(0.9 + seconds / 200, 2), "hidden_present": round(13000 * (1 - known))}
    made |= {"reachable": round(13000 * (1 - known) * min(0.9, 0.1 + 1.6 * known))}
    for place, module in enumerate(MODULES.get(base, ())):
        count = round(13000 * (1 - known) * (0.1 + 0.2 * random.random() + 0.1 * place))
        made |= {f"{module}_made": count, f"{module}_right": round(count * (0.5 + 0.3 * random.random()))}
    return made | {"recipe_hash": f"{sum(map(ord, method)):06x}", "version": "0.1.0"}


def results(methods=(*LEVELS, "full_labels"), known=(0.1, 0.5, 0.9), seeds=(0, 1, 2), **setting):
    rows = [row(method, share, seed, **setting) for method in methods for share in known for seed in seeds]
    table = pd.DataFrame(rows, columns=list(COLUMNS)) if rows else pd.DataFrame(columns=list(COLUMNS))
    return table.drop_duplicates(["data", "method", "known", "seed"]).reset_index(drop=True)


def everything():
    """A sweep that is done: all methods, all variants, and one larger run."""
    variants = ("ablation", "threshold", "threshold_intra", "threshold_cross", "departure")
    parts = [
        results(known=(0.1, 0.3, 0.5, 0.7, 0.9)),
        results(group(*variants), (0.1, 0.5)),
        results(group("prototypes"), (0.2, 0.5, 0.8)),
        results(("plain", "ssgrl", "hst"), (0.1,), (0,), images=10_000),
    ]
    return pd.concat(parts, ignore_index=True)
