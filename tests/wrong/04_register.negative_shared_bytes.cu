// refused: launch: SHARED_BYTES below zero
constexpr int BM = 64;
constexpr int BN = 64;
constexpr int BK = 8;
constexpr int TM = 4;
constexpr int TN = 4;
constexpr int SHARED_BYTES = -4;
extern "C" __global__ void __launch_bounds__((BN / TN) * (BM / TM))
sgemm_register(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C)
{
    constexpr int TX = BN / TN, TY = BM / TM, T = TX * TY;
    __shared__ float As[BK][BM + 4];
    __shared__ float Bs[BK][BN];
    int t = threadIdx.x, tx = t % TX, ty = t / TX;
    int r0 = blockIdx.y * BM, c0 = blockIdx.x * BN;
    float sum[TM][TN] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        for (int i = t; i < BM * BK; i += T) {
            int r = i / BK, k = i % BK;
            As[k][r] = r0 + r < M && k0 + k < K ? A[(r0 + r) * K + k0 + k] : 0.0f;
        }
        for (int i = t; i < BK * BN; i += T) {
            int k = i / BN, c = i % BN;
            Bs[k][c] = k0 + k < K && c0 + c < N ? B[(k0 + k) * N + c0 + c] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < BK; ++k) {
            float a[TM], b[TN];
            #pragma unroll
            for (int i = 0; i < TM; ++i) a[i] = As[k][ty + i * TY];
            #pragma unroll
            for (int j = 0; j < TN; ++j) b[j] = Bs[k][tx + j * TX];
            #pragma unroll
            for (int i = 0; i < TM; ++i)
                #pragma unroll
                for (int j = 0; j < TN; ++j) sum[i][j] += a[i] * b[j];
        }
        __syncthreads();
    }
    #pragma unroll
    for (int i = 0; i < TM; ++i)
        #pragma unroll
        for (int j = 0; j < TN; ++j) {
            int r = r0 + ty + i * TY, c = c0 + tx + j * TX;
            if (r < M && c < N) C[r * N + c] = alpha * sum[i][j] + (beta != 0 ? beta * C[r * N + c] : 0.0f);
        }
}
