"""ssgrl: category features guided by words, a label graph and a classifier; known labels only (SPEC 1, 2)."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from fewtags.methods.base import Method, ParameterGroup, Setting
from fewtags.nn.tagger import CategoryTagger, SemanticTagger


class Ssgrl(Method):
    summary = "word-guided category features and a label graph, known labels only"
    network: ClassVar[type[CategoryTagger]] = SemanticTagger
    """From the backbone's map to logits; methods that extend this one may bring another."""

    def __init__(self, setting: Setting):
        super().__init__(setting)
        self.tagger = self.network(setting.recipe, setting.channels, setting.labels, setting.word_vectors)

    def forward(self, maps: Tensor) -> dict[str, Tensor]:
        return self.tagger(maps)

    def parameter_groups(self) -> list[ParameterGroup]:
        return shortcut_apart(self, self.tagger.shortcut)


def shortcut_apart(method: Method, *layers: nn.Linear | None) -> list[ParameterGroup]:
    """All parameters of a method, those of linear layers on the pooled map with their own learning rate."""
    shortcut = [parameter for layer in layers if layer is not None for parameter in layer.parameters()]
    rest = without(list(method.parameters()), shortcut)
    return [
        ParameterGroup("head", rest, method.recipe.head_lr),
        ParameterGroup("shortcut", shortcut, method.recipe.shortcut_lr),
    ]


def without(parameters: list[nn.Parameter], left_out: list[nn.Parameter]) -> list[nn.Parameter]:
    names = {id(parameter) for parameter in left_out}
    return [parameter for parameter in parameters if id(parameter) not in names]
