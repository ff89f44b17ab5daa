from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from fewtags.serve.batching import Batcher
from fewtags.serve.limits import Refusal
from tests.serve.fabricate import SIZE, ColourModel


def image(value: float) -> np.ndarray:
    return np.full((3, SIZE, SIZE), value, np.float32)


class Held:
    """A model that computes nothing until `go_on` is set, with its batcher."""

    def __init__(self, max_batch: int = 4, max_wait: float = 0.05):
        self.model = ColourModel()
        self.model.go_on.clear()
        self.observed: list[int] = []
        self.batcher = Batcher(
            self.model.probabilities, max_batch, max_wait, lambda size, _: self.observed.append(size)
        )
        self.batcher.start(SIZE)

    def go_on(self) -> None:
        self.model.go_on.set()


@pytest.fixture
def held():
    made = Held()
    yield made
    made.go_on()
    if made.batcher.state != "stopping":
        made.batcher.close()


def test_images_that_wait_are_computed_together_and_each_gets_its_own_answer(held: Held):
    answers = [held.batcher.submit(image(value / 10)) for value in range(10)]
    assert len(held.batcher) == 10
    held.go_on()
    for value, answer in enumerate(answers):
        assert answer.result(30) == pytest.approx([value / 10] * 3)
    assert held.observed == [4, 4, 2]
    assert sorted(held.model.batches[:2]) == [1, 4]  # the warm-up


def test_a_lone_image_waits_no_longer_than_told(held: Held):
    held.go_on()
    started = time.monotonic()
    held.batcher.submit(image(0.5)).result(30)
    assert 0.04 < time.monotonic() - started < 20


def test_an_image_that_comes_in_time_joins_the_batch():
    held = Held(max_batch=2, max_wait=30.0)
    held.go_on()
    first = held.batcher.submit(image(0.1))
    time.sleep(0.05)
    second = held.batcher.submit(image(0.2))
    started = time.monotonic()
    assert first.result(20) == pytest.approx([0.1] * 3)
    assert second.result(20) == pytest.approx([0.2] * 3)
    assert time.monotonic() - started < 20  # a full batch does not wait
    assert held.observed == [2]
    held.batcher.close()


def test_the_image_at_fault_fails_alone(held: Held):
    answers = [held.batcher.submit(image(value)) for value in (0.2, 1.0, 0.4)]
    held.go_on()
    assert answers[0].result(30) == pytest.approx([0.2] * 3)
    with pytest.raises(FloatingPointError):
        answers[1].result(30)
    assert answers[2].result(30) == pytest.approx([0.4] * 3)


def test_closing_finishes_what_is_queued_and_takes_no_more(held: Held):
    answers = [held.batcher.submit(image(0.3)) for _ in range(9)]
    closing = threading.Thread(target=held.batcher.close)
    closing.start()
    while held.batcher.state != "stopping":
        time.sleep(0.001)
    with pytest.raises(Refusal, match="shutting down") as refused:
        held.batcher.submit(image(0.3))
    assert refused.value.status == 503
    assert not any(answer.done() for answer in answers)
    held.go_on()
    closing.join(30)
    assert not closing.is_alive()
    assert all(answer.done() for answer in answers)
    assert held.batcher.state == "stopping"


def test_answers_nobody_waits_for_are_not_computed(held: Held):
    answers = [held.batcher.submit(image(0.3)) for _ in range(3)]
    assert answers[0].cancel()
    assert answers[2].cancel()
    held.go_on()
    answers[1].result(30)
    assert held.observed == [1]


def test_ready_only_after_the_warm_up(held: Held):
    assert held.batcher.state == "starting"
    held.go_on()
    held.batcher.submit(image(0.1)).result(30)
    assert held.batcher.state == "ready"


def test_a_model_that_fails_to_warm_up_is_never_ready(caplog: pytest.LogCaptureFixture):
    def broken(images: np.ndarray) -> np.ndarray:
        raise MemoryError("too large")

    batcher = Batcher(broken, 4, 0.0)
    batcher.start(SIZE)
    with pytest.raises(MemoryError):
        batcher.submit(image(0.1)).result(30)
    assert batcher.state == "failed"
    batcher.close()
