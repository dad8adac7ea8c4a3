"""What is measured against what: a module a peer, each with a class Peer.

Peer(threads) raises ImportError where the peer is not installed. A method named as a workload's `op` takes the
inputs (float32 numpy arrays) and the workload's attributes, and gives a function of no arguments: calling it is one
measured run, which ends when the result is there. None instead of a function, or no such method, leaves the workload out:
the peer has no good way to compute it. `get` makes the result of a run a numpy array. Outputs are allocated once,
outside of the measured run, where the peer's interface lets them be. A function with an attribute `timed` (a budget in
seconds -> a list of seconds) is measured by its own clock.
"""

NAMES = ("kiln", "numpy", "torch", "inductor", "onnxruntime", "onednn", "jax", "halide", "tvm")
