"""Scalar expressions: what they are made of, how they are written, and the functions that make them."""
