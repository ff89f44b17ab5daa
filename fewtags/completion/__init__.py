"""Filling unknown labels: probabilities, a promise about their precision, and reasons for a person to read."""
