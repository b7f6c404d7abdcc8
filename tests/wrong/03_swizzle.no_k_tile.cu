// refused: traffic, line 19: no tile, no conflicts, and every lane loads a row of K of its own

constexpr int TILE = 32;

extern "C" __global__ void __launch_bounds__(TILE * TILE)
scores_swizzle(const float *Q, const float *K, float *S, int M, int N, int D)
{
    __shared__ float q_tile[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int Row = blockIdx.y * TILE + ty;
    int Col = blockIdx.x * TILE + tx;

    float score = 0.0f;
    for (int ph = 0; ph < (D + TILE - 1) / TILE; ++ph) {
        int d = ph * TILE + tx;
        q_tile[ty][tx] = Row < M && d < D ? Q[Row * D + d] : 0.0f;
        __syncthreads();
        for (int j = 0; j < TILE && ph * TILE + j < D; ++j)
            score += q_tile[ty][j] * (Col < N ? K[Col * D + ph * TILE + j] : 0.0f);
        __syncthreads();
    }
    if (Row < M && Col < N)
        S[Row * N + Col] = score;
}
