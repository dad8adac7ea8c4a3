struct KilnFault {
  int check;
  int reserved;
  long long index;
  long long extent;
};

extern "C" __global__ void __launch_bounds__(256) kiln_narrow_0(const float* __restrict__ X, float* s_scan, int m, int n, long long, long long, long long, long long, unsigned char* workspace, KilnFault* fault) {
  const int blockIdx_x = blockIdx.x;
  const int threadIdx_x = threadIdx.x;
  if (blockIdx_x * 256 + threadIdx_x < n) {
    s_scan[blockIdx_x * 256 + threadIdx_x] = X[blockIdx_x * 256 + threadIdx_x];
  }
  if (blockIdx_x * 256 + threadIdx_x < n) {
    if (0 < m - 1) {
      float s_scan_last[1];
      s_scan_last[0] = s_scan[blockIdx_x * 256 + threadIdx_x];
      for (int g = 0; g < ((int)((unsigned)(m - 1) / 32u)); ++g) {
        float X_steps[32];
        #pragma unroll
        for (int n_1 = 0; n_1 < 32; ++n_1) {
          X_steps[n_1] = X[(g * 32 + n_1 + 1) * n + blockIdx_x * 256 + threadIdx_x];
        }
        #pragma unroll
        for (int u = 0; u < 32; ++u) {
          s_scan_last[0] = s_scan_last[0] + X_steps[u];
          X_steps[u] = s_scan_last[0];
        }
        #pragma unroll
        for (int n_2 = 0; n_2 < 32; ++n_2) {
          s_scan[(g * 32 + n_2 + 1) * n + blockIdx_x * 256 + threadIdx_x] = X_steps[n_2];
        }
      }
      for (int u_1 = 0; u_1 < ((int)((unsigned)(m + 31) % 32u)); ++u_1) {
        s_scan_last[0] = s_scan_last[0] + X[((int)((unsigned)(m + 31) / 32u) * 32 + u_1 - 31) * n + blockIdx_x * 256 + threadIdx_x];
        s_scan[((int)((unsigned)(m + 31) / 32u) * 32 + u_1 - 31) * n + blockIdx_x * 256 + threadIdx_x] = s_scan_last[0];
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(256) kiln_compact_0(const float* __restrict__ X, float* s_scan, long long m, long long n, long long, long long, long long, long long, unsigned char* workspace, KilnFault* fault) {
  const long long blockIdx_x = blockIdx.x;
  const long long threadIdx_x = threadIdx.x;
  if (blockIdx_x * 256 + threadIdx_x < n) {
    s_scan[blockIdx_x * 256 + threadIdx_x] = X[blockIdx_x * 256 + threadIdx_x];
  }
  if (blockIdx_x * 256 + threadIdx_x < n) {
    if (0 < m - 1) {
      float s_scan_last[1];
      s_scan_last[0] = s_scan[blockIdx_x * 256 + threadIdx_x];
      for (long long g = 0; g < ((long long)((unsigned long long)(m - 1) / 32ull)); ++g) {
        float X_steps[32];
        #pragma unroll
        for (long long n_1 = 0; n_1 < 32; ++n_1) {
          X_steps[n_1] = X[(g * 32 + n_1 + 1) * n + blockIdx_x * 256 + threadIdx_x];
        }
        #pragma unroll
        for (long long u = 0; u < 32; ++u) {
          s_scan_last[0] = s_scan_last[0] + X_steps[u];
          X_steps[u] = s_scan_last[0];
        }
        #pragma unroll
        for (long long n_2 = 0; n_2 < 32; ++n_2) {
          s_scan[(g * 32 + n_2 + 1) * n + blockIdx_x * 256 + threadIdx_x] = X_steps[n_2];
        }
      }
      for (long long u_1 = 0; u_1 < ((long long)((unsigned long long)(m + 31) % 32ull)); ++u_1) {
        s_scan_last[0] = s_scan_last[0] + X[((long long)((unsigned long long)(m + 31) / 32ull) * 32 + u_1 - 31) * n + blockIdx_x * 256 + threadIdx_x];
        s_scan[((long long)((unsigned long long)(m + 31) / 32ull) * 32 + u_1 - 31) * n + blockIdx_x * 256 + threadIdx_x] = s_scan_last[0];
      }
    }
  }
}
