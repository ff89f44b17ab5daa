"""A completed label table against the truth, entry by entry."""

from __future__ import annotations


def label_figures(truth, known, probability, decision) -> dict[str, float | None]:
    entries = right = completed = completed_right = 0
    said = said_right = filled = filled_right = present_holes = 0
    for row in range(len(truth)):
        for c in range(len(truth[row])):
            true, given = truth[row][c], known[row][c]
            entries += 1
            if given != 0:
                right += given == true
                completed += 1
                completed_right += given == true
                continue
            present_holes += true == 1
            guess = 1 if probability[row][c] >= 0.5 else -1
            right += guess == true
            if guess == 1:
                said += 1
                said_right += true == 1
            decided = decision[row][c]
            if decided != 0:
                completed += 1
                completed_right += decided == true
            if decided == 1:
                filled += 1
                filled_right += true == 1
    return {
        "label_accuracy": 100 * right / entries,
        "present_precision": 100 * said_right / said if said else None,
        "present_recall": 100 * said_right / present_holes if present_holes else None,
        "completeness": 100 * completed / entries,
        "completed_accuracy": 100 * completed_right / entries,
        "filled_precision": 100 * filled_right / filled if filled else None,
        "filled_recall": 100 * filled_right / present_holes if present_holes else None,
    }
