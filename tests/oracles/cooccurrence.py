"""P(j | i) from partial labels, counted one image at a time."""

import math


def cooccurrence(values):
    count = len(values[0])
    shares = [[math.nan] * count for _ in range(count)]
    for i in range(count):
        for j in range(count):
            together = [row[j] for row in values if i != j and row[i] == 1 and row[j] != 0]
            if together:
                shares[i][j] = sum(value == 1 for value in together) / len(together)
    return shares
