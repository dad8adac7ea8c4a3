"""Steps that say how a kernel runs: at the call, as text, and as messages of the wire."""
