"""plain: a linear layer on the pooled map, trained on the known labels only. The baseline of every table."""

from __future__ import annotations

from torch import Tensor

from fewtags.methods.base import Method, ParameterGroup, Setting
from fewtags.nn.classifier import pooled_classifier


class Plain(Method):
    summary = "a linear layer on the pooled features, known labels only: the baseline"
    uses_map = False

    def __init__(self, setting: Setting):
        super().__init__(setting)
        self.linear = pooled_classifier(setting.recipe, setting.channels, setting.labels)

    def forward(self, maps: Tensor) -> dict[str, Tensor]:
        return {"logits": self.linear(maps)}

    def parameter_groups(self) -> list[ParameterGroup]:
        return [ParameterGroup("shortcut", list(self.parameters()), self.recipe.shortcut_lr)]
