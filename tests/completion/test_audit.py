import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

from fewtags.completion.audit import audit_result, drawn, interval, write_audit
from fewtags.completion.suggestions import SCHEMA, read_suggestions
from fewtags.errors import UserError


def test_interval_by_its_definition():
    for right, count in ((0, 10), (7, 10), (95, 100), (10, 10)):
        low, high = interval(right, count, 0.95)
        if right:
            assert binom.sf(right - 1, count, low) == pytest.approx(0.025)
        if right < count:
            assert binom.cdf(right, count, high) == pytest.approx(0.025)
    assert interval(0, 10, 0.95)[0] == 0
    assert interval(10, 10, 0.95)[1] == 1
    assert interval(0, 0, 0.95) == (0, 1)


def test_half_of_the_sample_is_of_each_kind():
    values = np.repeat(np.array([1, 0, -1], np.int8), [50, 500, 5000])
    chosen = drawn(values, 40, 0)
    assert (values[chosen] == 1).sum() == (values[chosen] == -1).sum() == 20
    assert len(set(chosen.tolist())) == 40
    assert np.array_equal(chosen, drawn(values, 40, 0))
    assert not np.array_equal(chosen, drawn(values, 40, 1))
    assert (values[drawn(values, 200, 0)] == 1).sum() == 50
    assert len(drawn(values, 200, 0)) == 200
    assert len(drawn(values[:60], 100, 0)) == 50
    assert len(drawn(np.zeros(9, np.int8), 5, 0)) == 0


def suggestions(decisions):
    rows = [
        {
            "image": f"{i}.jpg", "category": "cat", "probability": 0.9, "decision": decision, "origin": "model",
            "score": 0.5, "intra": None, "intra_because": "[]", "cross": None, "cross_because": "[]",
        }
        for i, decision in enumerate(decisions)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, SCHEMA)


def test_answers_become_precisions(tmp_path):
    table = suggestions(["present"] * 4 + ["absent"] * 2)
    write_audit(table, tmp_path / "audit.csv")
    assert read_suggestions(tmp_path / "audit.csv").to_pylist() == table.to_pylist()
    with pytest.raises(UserError, match="nothing is answered yet"):
        audit_result(tmp_path / "audit.csv")
    lines = (tmp_path / "audit.csv").read_text().splitlines()
    answers = ["yes", "No", "1", "", "absent", "present"]
    answered = [
        lines[0],
        *(line.removesuffix('""') + answer for line, answer in zip(lines[1:], answers, strict=True)),
    ]
    (tmp_path / "audit.csv").write_text("\n".join(answered) + "\n")
    found = audit_result(tmp_path / "audit.csv")
    assert (found["present"]["right"], found["present"]["answered"]) == (2, 3)
    assert (found["absent"]["right"], found["absent"]["answered"]) == (1, 2)
    assert (found["present"]["low"], found["present"]["high"]) == pytest.approx(interval(2, 3, 0.95))


def test_errors_of_an_audit(tmp_path):
    with pytest.raises(UserError, match="there is no such file"):
        audit_result(tmp_path / "none.csv")
    (tmp_path / "a.csv").write_text("decision,answer\npresent,maybe\n")
    with pytest.raises(UserError, match="line 2, column 'answer': 'maybe' is neither yes, no nor blank"):
        audit_result(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("decision\npresent\n")
    with pytest.raises(UserError, match="no column answer"):
        audit_result(tmp_path / "a.csv")
