"""A category's discriminant by loops and Gauss' elimination."""

from collections.abc import Sequence

Matrix = Sequence[Sequence[float]]


def direction(maps: Matrix, present: Sequence[bool], ridge: float) -> list[float]:
    """(Σ + ridge · mean variance · I)⁻¹ (mean where present - mean of all)."""
    n, size = len(maps), len(maps[0])
    mean = [sum(row[d] for row in maps) / n for d in range(size)]
    cov = [[sum((r[a] - mean[a]) * (r[b] - mean[b]) for r in maps) / n for b in range(size)] for a in range(size)]
    extra = ridge * sum(cov[d][d] for d in range(size)) / size
    chosen = [row for row, here in zip(maps, present, strict=True) if here]
    towards = [sum(row[d] for row in chosen) / len(chosen) - mean[d] for d in range(size)]
    rows = [[cov[a][b] + extra * (a == b) for b in range(size)] + [towards[a]] for a in range(size)]
    for a in range(size):
        for b in range(size):
            if a != b:
                factor = rows[b][a] / rows[a][a]
                rows[b] = [x - factor * y for x, y in zip(rows[b], rows[a], strict=True)]
    return [rows[a][size] / rows[a][a] for a in range(size)]
