"""A kernel as it is sent: a definition with its arguments, and the steps."""
