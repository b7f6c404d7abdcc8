// accepted: one buffer, two barriers; the next tiles are on their way in registers
#define BM 64
#define BN 64
#define BK 8
#define TM 4
#define TN 4

extern "C" __global__ void sgemm_register(int M, int N, int K, float alpha, const float *A, const float *B, float beta,
                                          float *C)
{
    __shared__ float As[BK][BM + 4], Bs[BK][BN];
    int tx = threadIdx.x % (BN / TN), ty = threadIdx.x / (BN / TN);
    float sum[TM][TN] = {};
    constexpr int THREADS = (BN / TN) * (BM / TM), A_MINE = BM * BK / THREADS, B_MINE = BK * BN / THREADS;
    float a_next[A_MINE], b_next[B_MINE];
    auto fetch = [&](int k0) {
        for (int n = 0; n < A_MINE; ++n) {
            int e = threadIdx.x + n * THREADS, r = blockIdx.y * BM + e / BK, k = k0 + e % BK;
            a_next[n] = r < M && k < K ? A[r * K + k] : 0.0f;
        }
        for (int n = 0; n < B_MINE; ++n) {
            int e = threadIdx.x + n * THREADS, k = k0 + e / BN, c = blockIdx.x * BN + e % BN;
            b_next[n] = k < K && c < N ? B[k * N + c] : 0.0f;
        }
    };
    fetch(0);
    for (int k0 = 0; k0 < K; k0 += BK) {
        for (int n = 0; n < A_MINE; ++n) {
            int e = threadIdx.x + n * THREADS;
            As[e % BK][e / BK] = a_next[n];
        }
        for (int n = 0; n < B_MINE; ++n) {
            int e = threadIdx.x + n * THREADS;
            Bs[e / BN][e % BN] = b_next[n];
        }
        __syncthreads();
        if (k0 + BK < K)
            fetch(k0 + BK);
        for (int k = 0; k < BK; ++k)
            for (int i = 0; i < TM; ++i)
                for (int j = 0; j < TN; ++j)
                    sum[i][j] += As[k][ty + i * (BM / TM)] * Bs[k][tx + j * (BN / TN)];
        __syncthreads();
    }
    for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN; ++j) {
            int r = blockIdx.y * BM + ty + i * (BM / TM), c = blockIdx.x * BN + tx + j * (BN / TN);
            if (r < M && c < N)
                C[r * N + c] = alpha * sum[i][j] + (beta != 0.0f ? beta * C[r * N + c] : 0.0f);
        }
}
