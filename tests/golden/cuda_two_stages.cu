struct KilnFault {
  int check;
  int reserved;
  long long index;
  long long extent;
};

extern "C" __global__ void __launch_bounds__(1) kiln_narrow_0(const float* __restrict__ A, float* __restrict__ C, int n, long long, long long, unsigned char* workspace, KilnFault* fault) {
  const int blockIdx_x = blockIdx.x;
  float* const s = (float*)(workspace + (0));
  s[blockIdx_x] = A[blockIdx_x] * 2.0f;
}

extern "C" __global__ void __launch_bounds__(1) kiln_narrow_1(const float* __restrict__ A, float* __restrict__ C, int n, long long, long long, unsigned char* workspace, KilnFault* fault) {
  const int blockIdx_x = blockIdx.x;
  float* const s = (float*)(workspace + (0));
  C[blockIdx_x] = s[n - blockIdx_x - 1];
}

extern "C" __global__ void __launch_bounds__(1) kiln_compact_0(const float* __restrict__ A, float* __restrict__ C, long long n, long long, long long, unsigned char* workspace, KilnFault* fault) {
  const long long blockIdx_x = blockIdx.x;
  float* const s = (float*)(workspace + (0));
  s[blockIdx_x] = A[blockIdx_x] * 2.0f;
}

extern "C" __global__ void __launch_bounds__(1) kiln_compact_1(const float* __restrict__ A, float* __restrict__ C, long long n, long long, long long, unsigned char* workspace, KilnFault* fault) {
  const long long blockIdx_x = blockIdx.x;
  float* const s = (float*)(workspace + (0));
  C[blockIdx_x] = s[n - blockIdx_x - 1];
}
