"""Every setting of a run in one flat, typed place. One recipe file reproduces one run.

A command-line flag, a recipe key and a field here share one name. `Recipe.load` reads a shipped recipe by name
(`default`, `paper`, `released`, or a method's) or any YAML file; `override` applies `key=value` pairs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from fewtags import plain_yaml
from fewtags.errors import UserError

SHIPPED = Path(__file__).parent / "recipes"
LONGEST_SHOWN = 200

Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1, le=1_000_000_000)]


def _fixed(value: Any) -> Any:
    """`fixed: 0.7` (a mapping or a string) means the number 0.7."""
    if isinstance(value, dict) and set(value) == {"fixed"}:
        value = value["fixed"]
    if isinstance(value, str) and value.startswith("fixed:"):
        value = value.removeprefix("fixed:").strip()
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


def _precision(value: Any) -> Any:
    """`precision: 0.8` (a mapping or a string) is kept as the string `precision:0.8`."""
    if isinstance(value, dict) and set(value) == {"precision"}:
        value = f"precision:{value['precision']}"
    return value.replace(" ", "") if isinstance(value, str) else value


Threshold = Annotated[Literal["global", "per_category"] | float, BeforeValidator(_fixed)]
ThresholdTarget = Annotated[
    Annotated[str, Field(pattern=r"^(half|utility|precision:0?\.\d+)$")], BeforeValidator(_precision)
]


class Recipe(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, validate_assignment=True, frozen=True)

    # What is trained
    method: str = "hst"
    """The system to train: see `fewtags methods`."""
    known: Share = 1.0
    """Share of the given training labels to keep; the others are hidden (SPEC 7). 1 keeps all that are given."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seeds the hiding of labels, the initial weights, the order of the images and every random view."""
    limit: Count | None = None
    """Train on this many training images only, drawn by the seed. None: all."""
    development: Annotated[int, Field(ge=0)] = 0
    """Training images set aside, by a fixed draw, for choosing settings: no run trains on them."""
    score: Literal["test", "development"] = "test"
    """Which images a run is scored on at its end."""
    holdout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Share of the known training labels kept out of training (unknown everywhere) to fit the decision
    thresholds of `predict` on, and θ too with `threshold_labels: holdout`. 0: `predict` decides at 0.5."""
    assume_absent: Share | None = None
    """Take unknown training entries as absent with this weight in the classification loss."""
    sample_absent: Count | None = None
    """Draw this many unknown entries per known present one, each epoch anew, as weak absents."""
    sample_absent_weight: Share = 0.5
    """Weight in the loss of an absent drawn by `sample_absent`."""
    difficult: Literal["unknown", "absent"] = "unknown"
    """Pascal VOC categories with only difficult objects (released: absent)."""
    on_bad_image: Literal["error", "skip"] = "error"
    """An image that cannot be read: stop and name it, or leave its row out and list it in skipped_images.csv."""

    # Backbone and images
    backbone: str = "lite0"
    """`lite0`, `lite1`, `lite2` (ImageNet weights from pip), or any timm model by name."""
    backbone_weights: str | None = None
    """A local weight file (.safetensors, or a .pth state dict) for the backbone."""
    pretrained: bool = True
    """Start the backbone from ImageNet weights."""
    freeze_backbone: bool | None = None
    """Train on cached features of a frozen backbone. None: frozen unless there is a GPU."""
    trained_stages: Annotated[int, Field(ge=0)] = 1
    """How many of the backbone's last stages are trained when it is not frozen; 0 none, a large number all."""
    cache_frozen_stages: bool = False
    """With a trained backbone: cache what its frozen stages make of `views`, and train the others on that. Much
    faster than reading new crops of the images in every epoch, and less varied."""
    image_size: Annotated[int, Field(ge=32, le=8192)] = 224
    """Side of the square the network sees. Training crops and the resize before them scale with it."""
    crop_sides: tuple[Positive, ...] = (512, 448, 384, 320, 256)
    """Sides of the random square crops, at image_size 448; scaled with image_size."""
    resize: Annotated[int, Field(ge=32, le=8192)] = 512
    """The side an image is resized to before cropping, at image_size 448; scaled with image_size."""
    views: tuple[Literal["plain", "flip", "crop1", "crop2", "crop3", "crop4"], ...] = (
        "plain",
        "flip",
        "crop1",
        "crop2",
    )
    """The views of each training image in the feature cache; one is drawn per image and epoch."""

    # Category-specific features (SPEC 1)
    category_features: Literal["sd", "sa"] = "sd"
    """SD: semantic decoupling by word-guided attention. SA: class activation maps."""
    feature_size: Count = 256
    """D: size of a category's feature (1024 in the paper)."""
    joint_size: Count = 256
    """J: size of the joint space of features and word vectors (512 in the paper)."""
    pool_map: bool = True
    """Average the feature map 2x2 first, as the released code; never done when min(H, W) < 14."""
    cam_pooling: Literal["max", "avg"] = "max"
    """How SA's activation maps become the second classifier's logits."""
    words: str | None = None
    """Word vectors: an .npz with `names` and `vectors`, a GloVe text file, or `hub:NAME` for a text encoder.
    None: learned embeddings."""
    words_pooling: Literal["mean", "sum"] = "mean"
    """How the words of a multi-word name are put together."""
    word_size: Count = 300
    """Size of learned word embeddings (those given bring their own size)."""

    # Label graph and classifier (SPEC 2)
    graph: Literal["smoothed", "released", "identity"] = "smoothed"
    """How P(j | i) is estimated from the known labels."""
    graph_smoothing: Positive | None = None
    """s, the prior's weight in counts. None: chosen by marginal likelihood."""
    graph_steps: Annotated[int, Field(ge=0, le=1000)] = 3
    """T: steps of the gated graph network."""
    classifier_size: Count = 1024
    """Width of the layer between [graph state, feature] and the scores."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.3
    """Dropout on the category features and before the scores."""
    shortcut: bool = True
    """Add a linear layer on the pooled map to the logits; the graph branch then starts small."""
    shortcut_peak: Share = 0.2
    """How much of the shortcut's score is that of the image's best place; the rest is the mean over all places."""
    first_scores: Literal["base_rates", "undecided"] = "base_rates"
    """Where scores start: at each category's share of the known labels, or at ½."""
    centre_pooled: bool = True
    """The linear layer on the pooled map reads it less the mean over the training images."""

    # Intra-image transfer (SPEC 3)
    intra: bool = True
    """Transfer labels within an image through learned co-occurrence."""
    intra_source: Literal["learned", "statistical"] = "learned"
    """What says how likely i is beside j: the pair head, or the label graph A."""
    pair_size: Count = 512
    """Width of the pair head's first layer."""
    pair_hidden: Count = 1024
    """Width of the pair head's second layer."""
    pair_layers: Literal["paper", "released"] = "paper"
    """released: no ReLU after the first layer and one linear layer more."""
    pair_scores: Literal["shared", "per_pair"] = "shared"
    """One score vector for all pairs, or one for each pair of categories (released)."""
    pair_prior: bool = True
    """Add logit A_ji to the pair head's scores: it then learns how an image differs from the average."""
    pair_targets: Literal["conditional", "both_known", "three_valued", "released"] = "conditional"
    """Which pairs teach the head, and what."""
    pair_loss: Literal["asymmetric", "bce"] = "asymmetric"
    """The pair head's loss."""
    gamma_present: Annotated[float, Field(ge=0)] = 1.0
    """γ₊ of the pair head's asymmetric loss."""
    gamma_absent: Annotated[float, Field(ge=0)] = 2.0
    """γ₋ of the pair head's asymmetric loss."""
    probability_shift: Share = 0.05
    """m of the asymmetric loss: absent probabilities below it cost nothing."""
    evidence: Literal["mean", "sum"] = "mean"
    """Evidence of i: mean (ours) or sum (paper) of p_ij over the known present j."""
    self_evidence: bool = False
    """released: a known present label counts itself as 1."""

    # Cross-image transfer (SPEC 4)
    cross: bool = True
    """Transfer labels across images through category prototypes."""
    cross_evidence: Literal["images", "features"] = "images"
    """Evidence of a category: how much the image is like its known images, by the discriminant of known labels, if
    there is one (see `discriminant_share`); or how much its feature is like its prototypes (paper)."""
    cross_source: Literal["prototypes", "instances"] = "prototypes"
    """Compare with prototypes, or with a bank of the newest known present features (SST)."""
    prototypes: Count = 10
    """K: prototypes of a category."""
    prototype_metric: Literal["spherical", "euclidean"] = "spherical"
    """The k-means that makes prototypes (released: euclidean)."""
    prototype_similarity: Literal["mean", "max"] = "mean"
    """Similarity to a category: mean or largest cosine over its prototypes."""
    prototype_every: Count = 5
    """Recompute prototypes every so many epochs after warm-up (during warm-up after every epoch)."""
    instance_bank: Count = 100
    """Known present features kept per category with `cross_source: instances`."""
    absent_pairs: Literal["ignore", "include"] = "ignore"
    """Whether two images that both lack a category are pushed apart (the paper's "otherwise")."""
    contrast_queue: Annotated[int, Field(ge=0)] = 4096
    """Recent known features kept as partners of the contrastive loss, shared out over the categories."""
    prototype_contrast: bool = False
    """released: a prototype-contrast term, with its sign inverted as in the released code."""

    # Thresholds (SPEC 5)
    thresholds: Literal["learned", "released", "falling"] = "learned"
    """DTL as described in SPEC 5, the released code's clamp, or SST's schedule."""
    threshold_start: Share = 0.95
    """SST's schedule: the threshold of both modules when warm-up ends."""
    threshold_fall: Share = 0.025
    """SST's schedule: how much the threshold falls an epoch, at 20 epochs; scaled with the recipe's."""
    threshold_floor: Share = 0.75
    """SST's schedule: where the threshold stops falling."""
    threshold: Threshold = "global"
    """One learned θ, one per category, or a fixed number, for both modules."""
    threshold_intra: Threshold | None = None
    """The same for the intra-image module alone."""
    threshold_cross: Threshold | None = None
    """The same for the cross-image module alone."""
    threshold_target: ThresholdTarget = "half"
    """What θ aims at: `half` (P(present | evidence = θ) = ½), `precision:Q`, or `utility`."""
    threshold_labels: Literal["all", "holdout", "crossfit"] = "crossfit"
    """Which known labels teach θ: all of them, held-out ones, or all with two heads and two sets of prototypes
    that score each other's labels."""
    threshold_lr: Positive = 1e-2
    """Learning rate of θ and τ (own Adam group, no decay, no schedule, no clipping)."""
    dtl_gradient: Literal["theta_only", "through"] = "theta_only"
    """Whether the threshold loss also trains what makes the evidence (released: through)."""
    own_share: Share = 0.2
    """hst: after warm-up also fill each category's surest unknown entries by own score (see `plain_beside`): this
    share of the present labels that are hidden, by the known ones' base rate; 0 (paper): none."""
    plain_beside: bool = True
    """hst: a layer like `plain` beside the network that learns from known labels alone. No filled label confirms
    itself in its scores, so they choose the labels of `own_share`; `complete` shows what they alone would fill."""
    discriminant_share: Share = 0.6
    """hst with `plain_beside` and a frozen backbone: how much of the score is that of a linear discriminant, made
    of the mean image of each category's known and own-filled present labels; and of that layer's score, of one of
    known labels alone; 0 (paper): none."""
    discriminant_classes: bool = True
    """The discriminants may read how likely the backbone finds the classes it was trained on, if its weights came
    with those; known labels decide whether that helps."""
    plausible_share: Share = 1.0
    """hst with `plain_beside`: what is transferred is filled only where that layer finds it plausible, as one of
    this share of the category's hidden present labels; 0 (paper): always."""
    warmup_share: Share = 0.25
    """Share of the epochs without pseudo labels (5 of 20 in the paper)."""

    # Parts of the other systems (SPEC 9)
    confidence: Share = 0.7
    """`plain_pl`, `ssgrl_pl`: unknown entries whose own predicted probability reaches this become present."""
    curriculum_strategy: Literal["threshold", "proportion", "positives", "agreement"] = "threshold"
    """`curriculum`: which unknown entries are labelled after a round."""
    curriculum_rounds: Count = 4
    """`curriculum`: how often it trains; unknown entries are labelled between the rounds."""
    curriculum_threshold: Annotated[float, Field(ge=0.5, le=1)] = 0.9
    """`curriculum`: an entry is labelled present above this probability, absent below one minus it."""
    curriculum_share: Share = 0.5
    """`curriculum` by proportion: the share of unknown entries, surest first, that the last round labels."""
    edge_threshold: Share = 0.4
    """`gcn_ml`, `p_gcn`: an edge wherever A_ij reaches this."""
    edge_weight: Share = 0.2
    """`gcn_ml`, `p_gcn`: what a category's neighbours weigh together, against itself."""
    gcn_size: Count = 1024
    """`gcn_ml`, `p_gcn`: width between the two graph convolutions."""
    blend_instances: bool = True
    """`sarb`, `hst_fb`: blend in the features of another image that is known to show the category."""
    blend_prototypes: bool = True
    """`sarb`, `hst_fb`: blend in a prototype of one random unknown category."""
    blend_weight: Annotated[float, Field(ge=0)] = 1.0
    """`sarb`, `hst_fb`: what the losses on blended features count."""

    # Loss (SPEC 6)
    known_normalization: Literal["batch", "image", "categories"] = "batch"
    """What ℓ is divided by: known entries of the batch, of each image, or the number of categories."""
    pseudo_normalization: Literal["union", "own"] = "union"
    """ℓ over known and pseudo labels together, or over the pseudo labels alone."""
    intra_weight: Annotated[float, Field(ge=0)] = 0.1
    """λ₁ of L_ist (10 in the paper). A large one bends the features to the few known pairs."""
    cross_weight: Annotated[float, Field(ge=0)] = 0.05
    """λ₂ of L_cst."""
    threshold_weight: Annotated[float, Field(ge=0)] = 0.1
    """λ₃ of the threshold losses."""
    ramp_transfer: bool = False
    """released: L_ist and L_cst grow linearly over epoch 1."""

    # Optimisation (SPEC 6)
    epochs: Count = 20
    """Passes over the training images; the last epoch's model is the result."""
    batch_size: Count = 32
    """Images a step."""
    optimizer: Literal["adamw", "adam"] = "adamw"
    """adamw: decoupled weight decay; adam: decay added to the gradient, as in the paper."""
    backbone_lr: Positive = 1e-5
    """Learning rate of the trained backbone stages."""
    head_lr: Positive = 1e-4
    """Learning rate of everything after the backbone."""
    shortcut_lr: Positive = 1e-3
    """Learning rate of the linear layer on the pooled map: `plain`, and the shortcut."""
    weight_decay: Annotated[float, Field(ge=0)] = 5e-4
    """Weight decay of all but thresholds, biases and norms."""
    schedule: Literal["step", "cosine", "constant"] = "cosine"
    """step: divide by 10 every `step_epochs`."""
    step_epochs: Count = 10
    """Epochs between the steps of `schedule: step`."""
    clip_norm: Annotated[float, Field(ge=0)] = 10.0
    """Largest gradient norm (thresholds apart); 0 switches clipping off."""

    # Machine
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """Where to compute. auto: a GPU if there is one."""
    workers: Annotated[int, Field(ge=0)] | None = None
    """Processes that load images. None: the number of cores, at most 8."""
    threads: Count | None = None
    """Threads of torch on the CPU. None: torch's choice."""

    @classmethod
    def load(cls, name_or_file: str | Path = "default") -> Recipe:
        """A shipped recipe by name, or a YAML file."""
        path = SHIPPED / f"{name_or_file}.yaml"
        if not path.is_file():
            path = Path(name_or_file)
        if not path.is_file():
            raise UserError(
                f"no recipe {str(name_or_file)!r}: neither a file nor one of {', '.join(shipped_recipes())}"
            )
        settings = plain_yaml.read(path) or {}
        if not isinstance(settings, dict):
            raise UserError(f"{path}: a recipe is a list of `key: value` lines")
        return _validated(cls, settings, str(path))

    def replace(self, **settings: Any) -> Recipe:
        """A copy with these settings, validated."""
        return _validated(type(self), self.model_dump() | settings, "settings")

    def override(self, assignments: Iterable[str]) -> Recipe:
        """Apply `key=value` pairs as given to --set; values are read as YAML."""
        settings: dict[str, Any] = {}
        for assignment in assignments:
            key, equals, value = assignment.partition("=")
            if not equals:
                raise UserError(f"--set {assignment}: write it as key=value")
            settings[key.strip()] = plain_yaml.parse(value, f"--set {assignment}")
        return _validated(type(self), self.model_dump() | settings, "--set")

    def to_yaml(self) -> str:
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)

    def hash(self) -> str:
        """Short name of everything that decides the result (not where it is computed)."""
        decides = self.model_dump(mode="json", exclude={"device", "workers", "threads", "on_bad_image"})
        return hashlib.sha256(yaml.safe_dump(decides).encode()).hexdigest()[:12]

    @property
    def caches(self) -> bool:
        """Whether training reads cached maps, and no image twice."""
        return bool(self.freeze_backbone) or self.cache_frozen_stages

    @property
    def warmup_epochs(self) -> int:
        """Epochs without pseudo labels: 5 of 20, scaled."""
        return max(1, round(self.warmup_share * self.epochs)) if self.warmup_share else 0

    def threshold_of(self, module: Literal["intra", "cross"]) -> Literal["global", "per_category"] | float:
        own = self.threshold_intra if module == "intra" else self.threshold_cross
        return self.threshold if own is None else own


def shipped_recipes() -> list[str]:
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


def _validated(cls: type[Recipe], settings: dict[str, Any], where: str) -> Recipe:
    try:
        return cls.model_validate(settings)
    except ValidationError as problem:
        lines = [_explain(error) for error in problem.errors()]
        raise UserError(f"{where}: " + "; ".join(dict.fromkeys(lines))) from problem


def _explain(error: Any) -> str:
    key = str(error["loc"][0]) if error["loc"] else "recipe"
    if error["type"] == "extra_forbidden":
        import difflib

        close = difflib.get_close_matches(key[:LONGEST_SHOWN], Recipe.model_fields, n=1)
        return f"there is no setting {key[:LONGEST_SHOWN]!r}" + (f"; did you mean {close[0]!r}?" if close else "")
    given = repr(error["input"])
    return f"{key[:LONGEST_SHOWN]}={given[:LONGEST_SHOWN]}: {error['msg'].lower()}"
