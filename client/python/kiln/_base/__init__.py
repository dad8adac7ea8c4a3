"""What all parts of the package stand on: errors at the user's line, names that were not found, element types."""
