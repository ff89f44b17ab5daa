"""What a run records about where it came from, and the comparison of a run with its repetition."""
