"""Networks from category features to logits: by a label graph (SSGRL, HST; KGGR) or graph convolution (P-GCN)."""

from __future__ import annotations

from torch import Tensor, nn

from fewtags.nn.category_features import SemanticAttention, SemanticDecoupling
from fewtags.nn.classifier import CategoryClassifier, first_scores, shortcut_of
from fewtags.nn.dropout import Dropout
from fewtags.nn.graph_convolution import GraphConvolutions, convolution_adjacency
from fewtags.nn.label_graph import GatedGraph, conditional_graph
from fewtags.recipe import Recipe


class CategoryTagger(nn.Module):
    """Maps (B, channels, H, W) → dict with

    - "logits" (B, C);
    - "features" (B, C, D), one vector per category, before any dropout: what transfer compares;
    - "beside" (B, C), what the logits get from beside the graph: the shortcut, and SA's second classifier;
    - "attention" (B, C, H, W), where each category looked.

    Subclasses say how features become scores, in `score`, and make the modules for it in `make_scorer`.
    """

    adjacency: Tensor
    """(C, C): A, from the known labels."""

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
        self.make_scorer(recipe, first_scores(recipe, labels))
        self.dropout = Dropout(recipe.dropout)
        self.shortcut = shortcut_of(recipe, channels, labels)
        self.graph_share = 0.5 if recipe.category_features == "sa" else 1.0  # SA averages two classifiers

    def make_scorer(self, recipe: Recipe, scores: Tensor) -> None:
        """Scores (C,) to start from. With `recipe.shortcut` that one does, and this adds little at first."""
        raise NotImplementedError

    def forward(self, maps: Tensor) -> dict[str, Tensor]:
        features, attention, map_logits = self.category_features(maps)  # (B, C, D), (B, C, H, W), (B, C)?
        beside = features.new_zeros(features.shape[:2]) if map_logits is None else map_logits / 2
        if self.shortcut is not None:
            beside = beside + self.shortcut(maps)
        logits = self.logits(features, beside)
        return {"logits": logits, "features": features, "beside": beside, "attention": attention}

    def logits(self, features: Tensor, beside: Tensor) -> Tensor:
        """Category features (B, C, D) and what is beside the graph (B, C) → logits (B, C)."""
        return self.graph_share * self.score(features) + beside

    def score(self, features: Tensor) -> Tensor:
        """Category features (B, C, D) → logits (B, C)."""
        raise NotImplementedError


class SemanticTagger(CategoryTagger):
    """The network of SSGRL and HST: the scores come through a gated graph network and one row per category."""

    def make_scorer(self, recipe: Recipe, scores: Tensor) -> None:
        self.graph = GatedGraph(recipe.feature_size, recipe.graph_steps)
        self.classifier = CategoryClassifier(
            len(scores), recipe.feature_size, recipe.classifier_size, recipe.dropout
        )
        if recipe.shortcut:
            self.classifier.start_small()
        else:
            self.classifier.start_at(scores)

    def score(self, features: Tensor) -> Tensor:
        dropped = self.dropout(features)
        return self.classifier(self.graph(dropped, self.adjacency), dropped, self.rows())

    def rows(self) -> Tensor:
        """(C, hidden): the classifiers' weights."""
        return self.classifier.rows


class KnowledgeTagger(SemanticTagger):
    """The network of KGGR: a second gated graph network over A turns the classifiers' rows into those used.

    It runs once a batch, whatever the number of images: 9·C·hidden² multiply-adds for each of its steps. Its gates
    start nearly closed, so that it sets out from SSGRL: open ones blur the rows before they have learned anything.
    """

    def __init__(self, recipe: Recipe, channels: int, labels: Tensor, word_vectors: Tensor | None = None):
        super().__init__(recipe, channels, labels, word_vectors)
        self.row_graph = GatedGraph(recipe.classifier_size, recipe.graph_steps)
        self.row_graph.start_closed()

    def rows(self) -> Tensor:
        return self.row_graph(self.classifier.rows, self.adjacency)


class ConvolutionTagger(CategoryTagger):
    """The network of P-GCN: two graph convolutions over the categories, the last of which gives the scores."""

    edges: Tensor
    """(C, C): Â, few and weighted edges."""

    def make_scorer(self, recipe: Recipe, scores: Tensor) -> None:
        edges = convolution_adjacency(self.adjacency, recipe.edge_threshold, recipe.edge_weight)
        self.register_buffer("edges", edges)
        self.convolutions = GraphConvolutions(recipe.feature_size, recipe.gcn_size, 1, recipe.dropout)
        if recipe.shortcut:
            self.convolutions.start_small()

    def score(self, features: Tensor) -> Tensor:
        return self.convolutions(self.dropout(features), self.edges).squeeze(-1)


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
