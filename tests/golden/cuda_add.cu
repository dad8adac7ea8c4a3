struct KilnFault {
  int check;
  int reserved;
  long long index;
  long long extent;
};

extern "C" __global__ void __launch_bounds__(64) kiln_narrow_0(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int n, long long, long long, long long, unsigned char* workspace, KilnFault* fault) {
  const int blockIdx_x = blockIdx.x;
  const int threadIdx_x = threadIdx.x;
  if (blockIdx_x * 64 + threadIdx_x < n) {
    C[blockIdx_x * 64 + threadIdx_x] = A[blockIdx_x * 64 + threadIdx_x] + B[blockIdx_x * 64 + threadIdx_x];
  }
}

extern "C" __global__ void __launch_bounds__(64) kiln_compact_0(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, long long n, long long, long long, long long, unsigned char* workspace, KilnFault* fault) {
  const long long blockIdx_x = blockIdx.x;
  const long long threadIdx_x = threadIdx.x;
  if (blockIdx_x * 64 + threadIdx_x < n) {
    C[blockIdx_x * 64 + threadIdx_x] = A[blockIdx_x * 64 + threadIdx_x] + B[blockIdx_x * 64 + threadIdx_x];
  }
}
