from __future__ import annotations

import re

from fewtags.serve.metrics import Histogram, Metrics


def parsed(text: str) -> dict[str, float]:
    """Every line of samples; anything else must be a comment."""
    samples = {}
    for line in text.splitlines():
        if line.startswith("#"):
            assert re.fullmatch(r"# (HELP|TYPE) \w+ .+", line)
        else:
            name, value = re.fullmatch(r'(\w+(?:\{(?:\w+="[^"]*",?)+\})?) (\S+)', line).groups()  # type: ignore[union-attr]
            samples[name] = float(value)
    return samples


def test_buckets_are_cumulative_and_include_their_bound():
    histogram = Histogram((1, 2, 4))
    for value in (1, 2, 2, 3, 9):
        histogram.add(value)
    assert parsed("\n".join(histogram.lines("size"))) == {
        'size_bucket{le="1"}': 1,
        'size_bucket{le="2"}': 3,
        'size_bucket{le="4"}': 4,
        'size_bucket{le="+Inf"}': 5,
        "size_sum": 17,
        "size_count": 5,
    }


def test_text_says_what_was_counted():
    metrics = Metrics(["/predict", "/health"])
    metrics.request("/predict", 200, 0.02)
    metrics.request("/predict", 200, 0.3)
    metrics.request("/predict", 413, 0.001)
    metrics.request("/health", 200, 0.5)
    metrics.request("/a", 404, 0.5)
    metrics.request("/b", 404, 0.5)
    metrics.images(tagged=3, refused=1)
    metrics.batch(3, 0.04)
    found = parsed(metrics.text(waiting=7, ready=True))
    assert found['fewtags_requests_total{path="/predict",status="200"}'] == 2
    assert found['fewtags_requests_total{path="/predict",status="413"}'] == 1
    assert found['fewtags_requests_total{path="other",status="404"}'] == 2  # a stranger cannot add names
    assert found["fewtags_predict_seconds_count"] == 3
    assert found['fewtags_predict_seconds_bucket{le="0.025"}'] == 2
    assert found['fewtags_images_total{outcome="tagged"}'] == 3
    assert found['fewtags_images_total{outcome="refused"}'] == 1
    assert found['fewtags_batch_size_bucket{le="2"}'] == 0
    assert found['fewtags_batch_size_bucket{le="4"}'] == 1
    assert found["fewtags_batch_seconds_sum"] == 0.04
    assert (found["fewtags_waiting_images"], found["fewtags_ready"]) == (7, 1)
