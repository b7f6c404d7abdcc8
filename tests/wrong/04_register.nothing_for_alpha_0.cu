// refused: result: alpha = 0 leaves C as it was, where it should be beta * C
#define BM 64
#define BN 64
#define BK 8
#define TM 4
#define TN 4

extern "C" __global__ void sgemm_register(int M, int N, int K, float alpha, const float *A, const float *B, float beta,
                                          float *C)
{
    __shared__ float As[BK][BM + 4], Bs[BK][BN];
    if (alpha == 0.0f)
        return;
    int tx = threadIdx.x % (BN / TN), ty = threadIdx.x / (BN / TN);
    float sum[TM][TN] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        for (int e = threadIdx.x; e < BM * BK; e += blockDim.x) {
            int r = blockIdx.y * BM + e / BK, k = k0 + e % BK;
            As[e % BK][e / BK] = r < M && k < K ? A[r * K + k] : 0.0f;
        }
        for (int e = threadIdx.x; e < BK * BN; e += blockDim.x) {
            int k = k0 + e / BN, c = blockIdx.x * BN + e % BN;
            Bs[e / BN][e % BN] = k < K && c < N ? B[k * N + c] : 0.0f;
        }
        __syncthreads();
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
