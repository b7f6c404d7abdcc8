// refused: bounds, line 19 or 29: a row begins at a multiple of 16 bytes only if K and N are multiples of 4
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
            if (r < M && k < K)
                x = *(const float4 *)&A[r * K + k];
            As[q % 2 * 4][q / 2] = x.x;
            As[q % 2 * 4 + 1][q / 2] = x.y;
            As[q % 2 * 4 + 2][q / 2] = x.z;
            As[q % 2 * 4 + 3][q / 2] = x.w;
        }
        for (int q = threadIdx.x; q < BK * BN / 4; q += blockDim.x) {
            int k = k0 + q / (BN / 4), c = blockIdx.x * BN + q % (BN / 4) * 4;
            float4 x = {0.0f, 0.0f, 0.0f, 0.0f};
            if (k < K && c < N)
                x = *(const float4 *)&B[k * N + c];
            *(float4 *)&Bs[q / (BN / 4)][q % (BN / 4) * 4] = x;
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
