// refused: compile: no constant TILE, from which the launch is made

constexpr int T = 32;

extern "C" __global__ void __launch_bounds__(T * T)
scores_swizzle(const float *Q, const float *K, float *S, int M, int N, int D)
{
    __shared__ float q_tile[T][T];
    __shared__ float k_tile[T][T];
    int tx = threadIdx.x, ty = threadIdx.y;
    int Row = blockIdx.y * T + ty;
    int Col = blockIdx.x * T + tx;
    int key = blockIdx.x * T + ty;

    float score = 0.0f;
    for (int ph = 0; ph < (D + T - 1) / T; ++ph) {
        int d = ph * T + tx;
        q_tile[ty][tx] = Row < M && d < D ? Q[Row * D + d] : 0.0f;
        k_tile[ty][tx ^ ty] = key < N && d < D ? K[key * D + d] : 0.0f;
        __syncthreads();
        for (int j = 0; j < T; ++j)
            score += q_tile[ty][j] * k_tile[tx][j ^ tx];
        __syncthreads();
    }
    if (Row < M && Col < N)
        S[Row * N + Col] = score;
}
