"""What keeps Kiln and its peers to the instructions of AVX2. onnxruntime takes what the host has, and inductor, Halide and
TVM compile for it; jax is told, but multiplies matrices as the host can."""

PEERS = ("kiln", "numpy", "torch", "onednn", "jax")
ENVIRONMENT = {
    "KILN_CPU": "x86-64-v3", "OPENBLAS_CORETYPE": "Haswell", "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "ONEDNN_MAX_CPU_ISA": "AVX2", "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
}  # fmt: skip
