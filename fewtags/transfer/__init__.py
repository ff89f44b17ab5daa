"""Filling unknown labels from known ones: within an image, across images, and the thresholds that decide."""
