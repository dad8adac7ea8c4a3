struct KilnFault {
  int check;
  int reserved;
  long long index;
  long long extent;
};

extern "C" __global__ void __launch_bounds__(1) kiln_narrow_0(float* __restrict__ S, float* __restrict__ R, int m, int n, long long, long long, long long, long long, unsigned char* workspace, KilnFault* fault) {
  const int blockIdx_x = blockIdx.x;
  S[blockIdx_x] = 1.0f;
}

extern "C" __global__ void __launch_bounds__(1) kiln_narrow_1(float* S, float* __restrict__ R, int m, int n, long long, long long, long long, long long, unsigned char* workspace, KilnFault* fault, int t) {
  const int blockIdx_x = blockIdx.x;
  S[(t + 1) * n + blockIdx_x] = S[(t + 1) * n - blockIdx_x - 1];
}

extern "C" __global__ void __launch_bounds__(1) kiln_narrow_2(float* __restrict__ S, float* __restrict__ R, int m, int n, long long, long long, long long, long long, unsigned char* workspace, KilnFault* fault, int t) {
  const int blockIdx_x = blockIdx.x;
  R[t * n + blockIdx_x] = S[(t + 1) * n + blockIdx_x];
}

extern "C" __global__ void __launch_bounds__(1) kiln_compact_0(float* __restrict__ S, float* __restrict__ R, long long m, long long n, long long, long long, long long, long long, unsigned char* workspace, KilnFault* fault) {
  const long long blockIdx_x = blockIdx.x;
  S[blockIdx_x] = 1.0f;
}

extern "C" __global__ void __launch_bounds__(1) kiln_compact_1(float* S, float* __restrict__ R, long long m, long long n, long long, long long, long long, long long, unsigned char* workspace, KilnFault* fault, long long t) {
  const long long blockIdx_x = blockIdx.x;
  S[(t + 1) * n + blockIdx_x] = S[(t + 1) * n - blockIdx_x - 1];
}

extern "C" __global__ void __launch_bounds__(1) kiln_compact_2(float* __restrict__ S, float* __restrict__ R, long long m, long long n, long long, long long, long long, long long, unsigned char* workspace, KilnFault* fault, long long t) {
  const long long blockIdx_x = blockIdx.x;
  R[t * n + blockIdx_x] = S[(t + 1) * n + blockIdx_x];
}
