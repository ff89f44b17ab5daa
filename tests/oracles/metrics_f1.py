"""OP OR OF1 CP CR CF1, pseudo-label counts and F1-best thresholds by plain loops."""


def precision_recall_f1(predicted, labels):
    n, categories = len(labels), len(labels[0])
    right, taken, present = [0] * categories, [0] * categories, [0] * categories
    for b in range(n):
        for c in range(categories):
            if labels[b][c] == 0:
                continue
            right[c] += bool(predicted[b][c]) and labels[b][c] == 1
            taken[c] += bool(predicted[b][c])
            present[c] += labels[b][c] == 1
    scored = [c for c in range(categories) if present[c]]
    op = sum(right) / sum(taken) if sum(taken) else 0.0
    recall = sum(right) / sum(present) if sum(present) else 0.0
    cp = sum(right[c] / taken[c] if taken[c] else 0.0 for c in scored) / len(scored) if scored else 0.0
    cr = sum(right[c] / present[c] for c in scored) / len(scored) if scored else 0.0
    return {"OP": op, "OR": recall, "OF1": f1(op, recall), "CP": cp, "CR": cr, "CF1": f1(cp, cr)}


def f1(precision, recall):
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def top(probabilities, k):
    chosen = [[False] * len(row) for row in probabilities]
    for b, row in enumerate(probabilities):
        for c in sorted(range(len(row)), key=lambda c: (-row[c], c))[:k]:
            chosen[b][c] = True
    return chosen


def pseudo_label_counts(known, filled, truth):
    made = judged = right = hidden = reachable = 0
    for b in range(len(known)):
        for c in range(len(known[0])):
            if known[b][c] != 0:
                continue
            if filled[b][c]:
                made += 1
                judged += truth[b][c] != 0
                right += truth[b][c] == 1
            if truth[b][c] == 1:
                hidden += 1
                reachable += any(known[b][j] == 1 for j in range(len(known[0])) if j != c)
    return made, judged, right, hidden, reachable


def best_f1(scores, labels):
    """The largest F1 that any threshold reaches on the known entries."""
    known = [(s, y) for s, y in zip(scores, labels, strict=True) if y != 0]
    best = 0.0
    for threshold in {s for s, _ in known}:
        right = sum(1 for s, y in known if s >= threshold and y == 1)
        taken = sum(1 for s, _ in known if s >= threshold)
        best = max(best, f1(right / taken, right / sum(1 for _, y in known if y == 1)))
    return best
