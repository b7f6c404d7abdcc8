// refused: traffic, line 13: nothing is tiled, and a BK of 512 does not make it so
constexpr int BM = 16;
constexpr int BN = 16;
constexpr int BK = 512;
constexpr int TM = 1;
constexpr int TN = 1;
extern "C" __global__ void __launch_bounds__((BN / TN) * (BM / TM))
sgemm_register(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C)
{
    int r = blockIdx.y * BM + threadIdx.x / BN, c = blockIdx.x * BN + threadIdx.x % BN;
    if (r >= M || c >= N) return;
    float s = 0;
    for (int k = 0; k < K; ++k) s += A[r * K + k] * B[k * N + c];
    C[r * N + c] = alpha * s + (beta != 0 ? beta * C[r * N + c] : 0.0f);
}
