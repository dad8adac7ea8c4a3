"""Tensors and the operations that make them, and their messages of the wire, both ways."""
