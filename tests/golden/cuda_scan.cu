struct KilnFault {
  int check;
  int reserved;
  long long index;
  long long extent;
};

extern "C" __global__ void __launch_bounds__(256) kiln_narrow_0(const float* X, float* s_scan, int m, int n, long long, long long, long long, long long, unsigned char* workspace, KilnFault* fault) {
  const int blockIdx_x = blockIdx.x;
  const int threadIdx_x = threadIdx.x;
  if (blockIdx_x * 256 + threadIdx_x < n) {
    s_scan[blockIdx_x * 256 + threadIdx_x] = X[blockIdx_x * 256 + threadIdx_x];
  }
  if (blockIdx_x * 256 + threadIdx_x < n) {
    for (int scan_idx = 0; scan_idx < (m - 1); ++scan_idx) {
      s_scan[(scan_idx + 1) * n + blockIdx_x * 256 + threadIdx_x] = s_scan[scan_idx * n + blockIdx_x * 256 + threadIdx_x] + X[(scan_idx + 1) * n + blockIdx_x * 256 + threadIdx_x];
    }
  }
}

extern "C" __global__ void __launch_bounds__(256) kiln_compact_0(const float* X, float* s_scan, long long m, long long n, long long, long long, long long, long long, unsigned char* workspace, KilnFault* fault) {
  const long long blockIdx_x = blockIdx.x;
  const long long threadIdx_x = threadIdx.x;
  if (blockIdx_x * 256 + threadIdx_x < n) {
    s_scan[blockIdx_x * 256 + threadIdx_x] = X[blockIdx_x * 256 + threadIdx_x];
  }
  if (blockIdx_x * 256 + threadIdx_x < n) {
    for (long long scan_idx = 0; scan_idx < (m - 1); ++scan_idx) {
      s_scan[(scan_idx + 1) * n + blockIdx_x * 256 + threadIdx_x] = s_scan[scan_idx * n + blockIdx_x * 256 + threadIdx_x] + X[(scan_idx + 1) * n + blockIdx_x * 256 + threadIdx_x];
    }
  }
}
