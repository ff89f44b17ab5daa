"""Sweeps over methods, known proportions and seeds: one run per cell, one row per finished cell."""
