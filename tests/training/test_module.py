import math

import pytest
import torch
from torch import nn

from fewtags.methods.base import ParameterGroup
from fewtags.recipe import Recipe
from fewtags.training.module import TrainingModule, make_optimizer, schedule_factor


def test_step_schedule_divides_by_ten_every_ten_epochs():
    recipe = Recipe(schedule="step", step_epochs=10)
    assert [schedule_factor(recipe, p) for p in (0, 9.9, 10, 20)] == pytest.approx([1, 1, 0.1, 0.01])


def test_cosine_schedule_falls_from_one_to_zero():
    recipe = Recipe(schedule="cosine", epochs=8)
    assert schedule_factor(recipe, 0) == 1
    assert schedule_factor(recipe, 4) == pytest.approx(0.5)
    assert schedule_factor(recipe, 2) == pytest.approx(0.5 * (1 + math.cos(math.pi / 4)))
    assert schedule_factor(recipe, 8) == pytest.approx(0)


def test_constant_schedule_is_constant():
    assert schedule_factor(Recipe(schedule="constant"), 17.3) == 1


def groups():
    matrix, bias = nn.Parameter(torch.ones(2, 2)), nn.Parameter(torch.ones(2))
    threshold = nn.Parameter(torch.tensor(1.0))
    return [
        ParameterGroup("head", [matrix, bias], 1e-3),
        ParameterGroup("thresholds", [threshold], 1e-2, decay=False, scheduled=False),
    ]


def test_only_matrices_are_decayed_and_thresholds_have_their_own_rate():
    made = {group["name"]: group for group in make_optimizer(groups(), Recipe(weight_decay=0.1)).param_groups}
    assert made["head"]["weight_decay"] == 0.1
    assert made["head (no decay)"]["weight_decay"] == 0
    assert made["thresholds (no decay)"]["lr"] == 1e-2
    assert made["thresholds (no decay)"]["weight_decay"] == 0


def test_released_thresholds_are_dragged_by_decay():
    threshold = nn.Parameter(torch.tensor(1.0))
    group = ParameterGroup("thresholds", [threshold], 1e-5, decay=True, scheduled=False)
    optimizer = make_optimizer([group], Recipe(optimizer="adam", weight_decay=5e-4))
    threshold.grad = torch.zeros(())  # no gradient from the data
    optimizer.step()
    assert 1 - float(threshold.detach()) == pytest.approx(1e-5, rel=0.1)


def test_clipping_leaves_thresholds_alone():
    module = TrainingModule(nn.Identity(), Recipe(clip_norm=1.0), [])  # type: ignore[arg-type]
    module.log = lambda *args, **kwargs: None  # type: ignore[method-assign]
    made = groups()
    for group in made:
        for parameter in group.parameters:
            parameter.grad = torch.full_like(parameter, 100.0)
    module.configure_gradient_clipping(make_optimizer(made, module.recipe))
    matrix, bias = made[0].parameters
    norm = torch.cat([matrix.grad.flatten(), bias.grad.flatten()]).norm()
    assert float(norm) == pytest.approx(1.0, rel=1e-3)
    assert float(made[1].parameters[0].grad) == 100
