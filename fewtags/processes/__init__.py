"""More than one process at one task: who each is (`place`), how they start (`launch`) and meet (`meeting`), and
what they work out together (`together`). With one process all of it does nothing."""
