struct KilnFault {
  int check;
  int reserved;
  long long index;
  long long extent;
};

extern "C" __global__ void __launch_bounds__(256) kiln_compact_0(const float* __restrict__ X, float* s_scan, long long m, long long n, long long X_stride0, long long X_stride1, long long s_scan_stride0, long long s_scan_stride1, unsigned char* workspace, KilnFault* fault) {
  const long long blockIdx_x = blockIdx.x;
  const long long threadIdx_x = threadIdx.x;
  if (blockIdx_x * 256 + threadIdx_x < n) {
    s_scan[(blockIdx_x * 256 + threadIdx_x) * s_scan_stride1] = X[(blockIdx_x * 256 + threadIdx_x) * X_stride1];
  }
  if (blockIdx_x * 256 + threadIdx_x < n) {
    for (long long scan_idx = 0; scan_idx < (m - 1); ++scan_idx) {
      s_scan[(scan_idx + 1) * s_scan_stride0 + blockIdx_x * s_scan_stride1 * 256 + threadIdx_x * s_scan_stride1] = s_scan[scan_idx * s_scan_stride0 + (blockIdx_x * 256 + threadIdx_x) * s_scan_stride1] + X[(scan_idx + 1) * X_stride0 + blockIdx_x * X_stride1 * 256 + threadIdx_x * X_stride1];
    }
  }
}
