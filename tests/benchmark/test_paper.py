import pytest

from fewtags.benchmark import paper
from fewtags.benchmark.contradictions import GAINS, contradictions, value

COCO = paper.DATASETS["coco"]


def figure(table, /, **where):
    for name, wanted in where.items():
        table = table[table[name] == wanted]
    assert len(table) == 1
    return table.iloc[0]


def test_every_published_name_has_one_of_ours():
    for table in (paper.results(), paper.averages(), paper.ablations(), paper.thresholds()):
        assert table["method"].notna().all()
    assert len(paper.results()) == 68 * 9
    assert len(paper.thresholds()) == 3 * 10 * 9


def test_figures_are_those_printed():
    assert (
        figure(paper.results(), dataset="MS-COCO", method="curriculum", metric="mAP", known=0.1)["value"] == 26.7
    )
    assert figure(paper.results(), dataset="VOC 2007", method="p_gcn", metric="mAP", known=0.9)["value"] == 93.1
    assert figure(paper.averages(), dataset="MS-COCO", method="hst_fb")["mAP"] == 78.7
    assert figure(paper.averages(), dataset="VG-200", method="sst")["CF1"] == 30.8
    assert figure(paper.thresholds(), dataset="VG-200", method="hst.threshold.0.6", known=0.3)["mAP"] == 44.2
    row = figure(paper.ablations(), table="ist", dataset="MS-COCO", label="Ours IST w/ stat")
    assert (row["method"], row["mAP"], row["OF1"], row["CF1"]) == ("hst.intra_statistical", 70.7, 71.0, 63.4)


def test_each_of_our_methods_has_one_average_per_dataset():
    assert not paper.averages().duplicated(["dataset", "method"]).any()


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ("voc2007:/data/VOC2007", "VOC 2007"),
        ("coco2014:/data/coco", "MS-COCO"),
        ("coco2017:x", "MS-COCO"),
        ("vg200:x", "VG-200"),
        ("coco-sample", "MS-COCO"),
        ("data/coco-sample", "MS-COCO"),
    ],
)
def test_data_of_a_published_set(data, name):
    found = paper.dataset_of(data)
    assert found is not None
    assert found.name == name


def test_other_data_is_not_in_the_paper():
    assert paper.dataset_of("scenes:train=100") is None
    assert paper.dataset_of("/photos/holiday") is None
    assert paper.dataset_of("coco/holiday") is None


def test_levels_are_comparable_only_in_the_papers_setting():
    assert paper.why_not_comparable(COCO, "coco2014:x", 82_081, "resnet101") == []
    assert paper.why_not_comparable(COCO, "coco-sample", 4000, "lite0") == [
        "coco-sample is not the split of MS-COCO that the paper uses",
        "4,000 training images instead of 82,783",
        "backbone lite0 instead of a fine-tuned ResNet-101",
    ]
    assert len(paper.why_not_comparable(COCO, "coco2017:x", 118_287, "resnet101")) == 1


def test_what_the_paper_says_twice_and_differently():
    expected = [
        ("HST on MS-COCO, mAP, 80 % known", "80.2", "80.3"),
        ("table of thresholds, MS-COCO, 0.4: average mAP", "74.6", "74.67"),
        ("Introduction", "HST over SST on MS-COCO: +1.3 mAP", "+1.2"),
        ("Analysis of CST", "Ours CST over Ours CST w/o L_cst on MS-COCO: +1.0 mAP", "+1.7"),
        ("Analysis of CST", "Ours CST over Ours CST w/o L_cst on VOC 2007: +0.4 mAP", "+0.5"),
        ("Complementary augmentation", "HST w/ FB over HST on MS-COCO: +0.3 OF1", "+0.4"),
        ("Complementary augmentation", "HST w/ FB over HST on MS-COCO: +0.5 CF1", "+0.3"),
        ("Abstract", "+1.4 mAP over the best previous algorithm on MS-COCO", "+1.2"),
        ("Abstract", "+3.3 mAP over the best previous algorithm on VG-200", "+3.0"),
        ("Performance on MS-COCO", "ASL is the second best", "SST has 76.7"),
        ("Performance on VOC 2007", "SST is the second best on VOC 2007 (10 % known: 81.5)", "ASL has 82.9"),
        ("Performance on VOC 2007", "70 % known: 92.5", "SST has 92.5"),
        ("Performance on VOC 2007", "90 % known: 92.8", "P-GCN has 93.1"),
        ("Analysis of DTL", "always best; MS-COCO, 90 % known: 80.4", "fixed at 0.5 has 80.5"),
        ("Analysis of DTL", "always best; VG-200, 30 % known: 43.3", "fixed at 0.6 has 44.2"),
        ("Analysis of DTL", "always best; VOC 2007, 30 % known: 90.5", "fixed at 0.7 has 90.9"),
        ("Analysis of DTL", "0.5 is the best fixed threshold on MS-COCO, 60 % known", "fixed at 0.7 has 79.3"),
        ("Analysis of HST", "SSGRL w/ PL improves on SSGRL", "87.4 against 87.7"),
    ]
    found = list(contradictions().itertuples(index=False))
    assert len(found) == len(expected)
    for (where, says, but), row in zip(expected, found, strict=True):
        assert where in row.where
        assert says in row.says
        assert but in row.but


def test_a_stated_gain_that_agrees_is_not_listed():
    agreeing = next(gain for gain in GAINS if gain.better == "Ours IST" and gain.worse == "SSGRL")
    assert value("MS-COCO", "Ours IST", "mAP", "average") - value("MS-COCO", "SSGRL", "mAP", "average") == (
        pytest.approx(agreeing.stated["MS-COCO"])
    )
    assert not contradictions()["says"].str.contains("Ours IST").any()
