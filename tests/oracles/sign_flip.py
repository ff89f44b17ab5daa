"""The paired sign-flip test and Holm's correction, by plain loops."""

import itertools


def sign_flip_p(differences):
    """Two-sided: the share of sign patterns whose mean is at least as far from 0 as the observed mean."""
    observed = abs(sum(differences)) / len(differences)
    reached = patterns = 0
    for signs in itertools.product((1, -1), repeat=len(differences)):
        mean = abs(sum(sign * value for sign, value in zip(signs, differences, strict=True))) / len(differences)
        patterns += 1
        if mean > observed - 1e-12:
            reached += 1
    return reached / patterns


def holm(ps):
    """The k-th smallest of m p-values is multiplied by m - k + 1, never falling below the one before."""
    adjusted = [None] * len(ps)
    left = list(range(len(ps)))
    so_far = 0.0
    while left:
        smallest = min(left, key=lambda index: ps[index])
        so_far = max(so_far, ps[smallest] * len(left))
        adjusted[smallest] = min(so_far, 1.0)
        left.remove(smallest)
    return adjusted
