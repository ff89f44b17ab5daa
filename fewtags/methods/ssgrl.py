"""ssgrl: category features guided by words, a label graph and a classifier; known labels only (SPEC 1, 2)."""

from __future__ import annotations

from torch import Tensor, nn

from fewtags.methods.base import Method, ParameterGroup, Setting
from fewtags.nn.tagger import SemanticTagger


class Ssgrl(Method):
    summary = "word-guided category features and a label graph, known labels only"

    def __init__(self, setting: Setting):
        super().__init__(setting)
        self.tagger = SemanticTagger(setting.recipe, setting.channels, setting.labels, setting.word_vectors)

    def forward(self, maps: Tensor) -> dict[str, Tensor]:
        return self.tagger(maps)

    def parameter_groups(self) -> list[ParameterGroup]:
        shortcut = list(self.tagger.shortcut.parameters()) if self.tagger.shortcut is not None else []
        rest = without(list(self.parameters()), shortcut)
        return [
            ParameterGroup("head", rest, self.recipe.head_lr),
            ParameterGroup("shortcut", shortcut, self.recipe.shortcut_lr),
        ]


def without(parameters: list[nn.Parameter], left_out: list[nn.Parameter]) -> list[nn.Parameter]:
    names = {id(parameter) for parameter in left_out}
    return [parameter for parameter in parameters if id(parameter) not in names]
