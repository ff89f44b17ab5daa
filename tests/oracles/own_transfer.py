"""How many entries a share of the present labels is, one by one."""


def base_rates(labels, prior=20.0):
    known = [value for row in labels for value in row if value != 0]
    overall = sum(value == 1 for value in known) / len(known)
    rates = []
    for column in zip(*labels, strict=True):
        own = [value for value in column if value != 0]
        rates.append((sum(value == 1 for value in own) + prior * overall) / (len(own) + prior))
    return rates


def passed(logits, labels, share):
    """How many unknown entries of each category pass."""
    return [int(rate * share * sum(row[c] == 0 for row in labels)) for c, rate in enumerate(base_rates(labels))]


def cuts(counts, shares, lowest=-12.0, highest=12.0):
    width, found = (highest - lowest) / len(counts[0]), []
    for row, share in zip(counts, shares, strict=True):
        above, place = 0, len(row)
        while place > 0 and above + row[place - 1] <= share * sum(row):
            above += row[place - 1]
            place -= 1
        found.append(lowest + place * width)
    return found
