"""gcn_ml: one feature an image; graph convolution turns the categories' words into their classifiers (SPEC 9)."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from fewtags.methods.base import Method, ParameterGroup, Setting
from fewtags.methods.ssgrl import shortcut_apart
from fewtags.nn.category_features import register_words
from fewtags.nn.classifier import shortcut_of
from fewtags.nn.dropout import Dropout
from fewtags.nn.graph_convolution import GraphConvolutions, convolution_adjacency
from fewtags.nn.label_graph import conditional_graph


class GcnMl(Method):
    summary = "linear classifiers that a graph convolution makes from the categories' words"
    category_axes: ClassVar = {"words": (0,)}
    words: Tensor
    """(C, E)"""
    edges: Tensor
    """(C, C): Â, few and weighted edges from the known labels."""

    def __init__(self, setting: Setting):
        super().__init__(setting)
        recipe, categories = setting.recipe, len(setting.categories)
        register_words(self, categories, setting.word_vectors, recipe.word_size)
        graph = conditional_graph(setting.labels, recipe.graph, recipe.graph_smoothing)
        self.register_buffer("edges", convolution_adjacency(graph, recipe.edge_threshold, recipe.edge_weight))
        self.convolutions = GraphConvolutions(self.words.shape[1], recipe.gcn_size, setting.channels)
        self.dropout = Dropout(recipe.dropout)
        self.shortcut = shortcut_of(recipe, setting.channels, setting.labels)
        if recipe.shortcut:
            self.convolutions.start_small()

    def forward(self, maps: Tensor) -> dict[str, Tensor]:
        logits = self.dropout(maps.amax((2, 3))) @ self.classifiers().T
        if self.shortcut is not None:
            logits = logits + self.shortcut(maps)
        return {"logits": logits}

    def classifiers(self) -> Tensor:
        """(C, channels). Divided by √channels, which the last layer could absorb: one step of Adam changes all of
        its entries alike, and their sum over channels and width would throw the scores far off."""
        return self.convolutions(self.words, self.edges) / self.convolutions.second.out_features**0.5

    def parameter_groups(self) -> list[ParameterGroup]:
        return shortcut_apart(self, self.shortcut)
