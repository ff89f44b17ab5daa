import pytest
import yaml

from fewtags.errors import UserError
from fewtags.recipe import SHIPPED, Recipe, shipped_recipes


@pytest.mark.parametrize("name", shipped_recipes())
def test_every_shipped_recipe_loads(name):
    assert Recipe.load(name)


def test_default_recipe_spells_out_every_field_and_equals_the_code():
    written = yaml.safe_load((SHIPPED / "default.yaml").read_text())
    assert set(written) == set(Recipe.model_fields)
    assert Recipe.load("default") == Recipe()


@pytest.mark.parametrize("name", ["paper", "released"])
def test_paper_and_released_spell_out_every_field(name):
    assert set(yaml.safe_load((SHIPPED / f"{name}.yaml").read_text())) == set(Recipe.model_fields)


def test_every_field_is_documented():
    assert [name for name, field in Recipe.model_fields.items() if not field.description] == []


def test_saved_recipe_is_the_same_recipe(tmp_path):
    recipe = Recipe(threshold=0.7, threshold_target="precision:0.8", views=("plain",), limit=5)
    (tmp_path / "recipe.yaml").write_text(recipe.to_yaml())
    assert Recipe.load(tmp_path / "recipe.yaml") == recipe


@pytest.mark.parametrize(
    ("assignment", "field", "value"),
    [
        ("epochs=3", "epochs", 3),
        ("threshold=fixed:0.7", "threshold", 0.7),
        ("threshold={fixed: 0.7}", "threshold", 0.7),
        ("threshold=per_category", "threshold", "per_category"),
        ("threshold_target=precision: 0.8", "threshold_target", "precision:0.8"),
        ("views=[plain, flip]", "views", ("plain", "flip")),
        ("words=null", "words", None),
    ],
)
def test_set_reads_values_as_yaml(assignment, field, value):
    assert getattr(Recipe().override([assignment]), field) == value


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("epoch=3", "there is no setting 'epoch'; did you mean 'epochs'?"),
        ("epochs", "write it as key=value"),
        ("known=2", "less than or equal to 1"),
        ("graph=none", "'smoothed', 'released' or 'identity'"),
        ("threshold_target=precision:2", "threshold_target"),
    ],
)
def test_a_wrong_setting_is_named(assignment, message):
    with pytest.raises(UserError, match=message.replace("?", r"\?")):
        Recipe().override([assignment])


def test_missing_and_broken_recipe_files_are_named(tmp_path):
    with pytest.raises(UserError, match="neither a file nor one of"):
        Recipe.load("nothing")
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [")
    with pytest.raises(UserError, match="not readable as YAML"):
        Recipe.load(broken)
    broken.write_text("- a")
    with pytest.raises(UserError, match="a recipe is a list"):
        Recipe.load(broken)


def test_module_thresholds_fall_back_to_the_common_one():
    recipe = Recipe(threshold=0.5, threshold_cross="global")
    assert recipe.threshold_of("intra") == 0.5
    assert recipe.threshold_of("cross") == "global"


def test_warmup_is_five_of_twenty_epochs_and_scales():
    assert Recipe(epochs=20).warmup_epochs == 5
    assert Recipe(epochs=8).warmup_epochs == 2
    assert Recipe(epochs=2).warmup_epochs == 1
    assert Recipe(warmup_share=0).warmup_epochs == 0


def test_hash_ignores_where_it_is_computed():
    assert Recipe().hash() == Recipe(device="cpu", threads=1, workers=0).hash()
    assert Recipe().hash() != Recipe(seed=1).hash()
