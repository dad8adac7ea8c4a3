struct KilnFault {
  int check;
  int reserved;
  long long index;
  long long extent;
};

__device__ inline void kiln_fire(KilnFault* fault, int check, long long index, long long extent) {
  if (atomicCAS(&fault->check, -1, check) != -1) return;
  fault->index = index;
  fault->extent = extent;
}

extern "C" __global__ void __launch_bounds__(1) kiln_compact_0(const float* __restrict__ A, const long long* __restrict__ I, float* __restrict__ C, long long n, long long m, long long, long long, long long, unsigned char* workspace, KilnFault* fault) {
  const long long blockIdx_x = blockIdx.x;
  if ((unsigned long long)(I[blockIdx_x]) >= (unsigned long long)(n)) {
    kiln_fire(fault, 0, I[blockIdx_x], n);
    return;
  }
  C[blockIdx_x] = A[I[blockIdx_x]];
}
