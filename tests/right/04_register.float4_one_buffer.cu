// accepted: float4 throughout where rows allow it, asked for A and B apart; one buffer, two barriers
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
            if (r < M && k < K && K % 4 == 0)
                x = *(const float4 *)&A[r * K + k];
            else if (r < M)
                for (int n = 0; n < 4 && k + n < K; ++n)
                    (&x.x)[n] = A[r * K + k + n];
            As[q % 2 * 4][q / 2] = x.x;
            As[q % 2 * 4 + 1][q / 2] = x.y;
            As[q % 2 * 4 + 2][q / 2] = x.z;
            As[q % 2 * 4 + 3][q / 2] = x.w;
        }
        for (int q = threadIdx.x; q < BK * BN / 4; q += blockDim.x) {
            int k = k0 + q / (BN / 4), c = blockIdx.x * BN + q % (BN / 4) * 4;
            float4 x = {0.0f, 0.0f, 0.0f, 0.0f};
            if (k < K && c < N && N % 4 == 0)
                x = *(const float4 *)&B[k * N + c];
            else if (k < K)
                for (int n = 0; n < 4 && c + n < N; ++n)
                    (&x.x)[n] = B[k * N + c + n];
            *(float4 *)&Bs[q / (BN / 4)][q % (BN / 4) * 4] = x;
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
            if (r < M && c + j < N)
                C[r * N + c + j] = alpha * sum[i][j] + (beta != 0.0f ? beta * C[r * N + c + j] : 0.0f);
    }
}
