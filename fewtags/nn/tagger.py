"""The network of SSGRL and HST: category features → label graph → classifier, beside a linear shortcut."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from fewtags.nn.category_features import SemanticAttention, SemanticDecoupling
from fewtags.nn.classifier import CategoryClassifier, linear_layer
from fewtags.nn.label_graph import GatedGraph, conditional_graph
from fewtags.recipe import Recipe


class SemanticTagger(nn.Module):
    """Maps (B, channels, H, W) → dict with

    - "logits" (B, C);
    - "features" (B, C, D), one vector per category, before any dropout: what transfer compares;
    - "attention" (B, C, H, W), where each category looked.
    """

    adjacency: Tensor
    """(C, C): A, from the known labels."""
    category_axes: ClassVar = {"shortcut.weight": (0,), "shortcut.bias": (0,)}

    def __init__(
        self,
        recipe: Recipe,
        channels: int,
        labels: Tensor,
        word_vectors: Tensor | None = None,
    ):
        super().__init__()
        categories = labels.shape[1]
        self.category_features = _category_features(recipe, channels, categories, word_vectors)
        self.register_buffer("adjacency", conditional_graph(labels, recipe.graph, recipe.graph_smoothing))
        self.graph = GatedGraph(recipe.feature_size, recipe.graph_steps)
        self.classifier = CategoryClassifier(
            categories, recipe.feature_size, recipe.classifier_size, recipe.dropout
        )
        self.dropout = nn.Dropout(recipe.dropout)
        self.shortcut = linear_layer(channels, categories) if recipe.shortcut else None
        if recipe.shortcut:
            self.classifier.start_small()

    def forward(self, maps: Tensor) -> dict[str, Tensor]:
        features, attention, map_logits = self.category_features(maps)  # (B, C, D), (B, C, H, W), (B, C)?
        logits = self.score(features)
        if map_logits is not None:
            logits = (logits + map_logits) / 2
        if self.shortcut is not None:
            logits = logits + self.shortcut(maps.mean((2, 3)))
        return {"logits": logits, "features": features, "attention": attention}

    def score(self, features: Tensor) -> Tensor:
        """Category features (B, C, D) → logits (B, C) through the label graph."""
        dropped = self.dropout(features)
        return self.classifier(self.graph(dropped, self.adjacency), dropped)


def _category_features(
    recipe: Recipe, channels: int, categories: int, word_vectors: Tensor | None
) -> SemanticDecoupling | SemanticAttention:
    if recipe.category_features == "sa":
        return SemanticAttention(channels, categories, recipe.feature_size, recipe.cam_pooling, recipe.pool_map)
    return SemanticDecoupling(
        channels,
        categories,
        recipe.feature_size,
        recipe.joint_size,
        word_vectors,
        recipe.word_size,
        recipe.pool_map,
    )
