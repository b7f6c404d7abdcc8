// refused: race, line 17 or 21 or 32: the first tiles are read before they are complete
#define BM 64
#define BN 64
#define BK 8
#define TM 4
#define TN 4

extern "C" __global__ void sgemm_register(int M, int N, int K, float alpha, const float *A, const float *B, float beta,
                                          float *C)
{
    __shared__ float As[2][BK][BM + 4], Bs[2][BK][BN];
    int tx = threadIdx.x % (BN / TN), ty = threadIdx.x / (BN / TN);
    float sum[TM][TN] = {};
    auto load = [&](int k0, int buffer) {
        for (int e = threadIdx.x; e < BM * BK; e += blockDim.x) {
            int r = blockIdx.y * BM + e / BK, k = k0 + e % BK;
            As[buffer][e % BK][e / BK] = r < M && k < K ? A[r * K + k] : 0.0f;
        }
        for (int e = threadIdx.x; e < BK * BN; e += blockDim.x) {
            int k = k0 + e / BN, c = blockIdx.x * BN + e % BN;
            Bs[buffer][e / BN][e % BN] = k < K && c < N ? B[k * N + c] : 0.0f;
        }
    };
    load(0, 0);
    int now = 0;
    for (int k0 = 0; k0 < K; k0 += BK) {
        if (k0 + BK < K)
            load(k0 + BK, now ^ 1);
        for (int k = 0; k < BK; ++k)
            for (int i = 0; i < TM; ++i)
                for (int j = 0; j < TN; ++j)
                    sum[i][j] += As[now][k][ty + i * (BM / TM)] * Bs[now][k][tx + j * (BN / TN)];
        __syncthreads();
        now ^= 1;
    }
    for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN; ++j) {
            int r = blockIdx.y * BM + ty + i * (BM / TM), c = blockIdx.x * BN + tx + j * (BN / TN);
            if (r < M && c < N)
                C[r * N + c] = alpha * sum[i][j] + (beta != 0.0f ? beta * C[r * N + c] : 0.0f);
        }
}
