"""Labels: the table, the ways to and from disk, and the hiding of labels."""
