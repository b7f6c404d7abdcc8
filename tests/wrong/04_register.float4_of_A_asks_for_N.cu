// refused: bounds, line 19: the rows of A are K long: it is K that must be a multiple of 4, not N
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
        for (int q = threadIdx.x; q < BM * BK / 4; q += blockDim.x) {
            int r = blockIdx.y * BM + q / 2, k = k0 + q % 2 * 4;
            float4 x = {0.0f, 0.0f, 0.0f, 0.0f};
            if (r < M && k < K && N % 4 == 0) {
                x = *(const float4 *)&A[r * K + k];
            } else if (r < M) {
                x.x = k < K ? A[r * K + k] : 0.0f;
                x.y = k + 1 < K ? A[r * K + k + 1] : 0.0f;
                x.z = k + 2 < K ? A[r * K + k + 2] : 0.0f;
                x.w = k + 3 < K ? A[r * K + k + 3] : 0.0f;
            }
            As[q % 2 * 4][q / 2] = x.x;
            As[q % 2 * 4 + 1][q / 2] = x.y;
            As[q % 2 * 4 + 2][q / 2] = x.z;
            As[q % 2 * 4 + 3][q / 2] = x.w;
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
