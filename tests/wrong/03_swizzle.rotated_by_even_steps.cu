// refused: traffic, line 22: row r is rotated by 2r, and 16 rows later by as much again

constexpr int TILE = 32;

extern "C" __global__ void __launch_bounds__(TILE * TILE)
scores_swizzle(const float *Q, const float *K, float *S, int M, int N, int D)
{
    __shared__ float q_tile[TILE][TILE];
    __shared__ float k_tile[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int Row = blockIdx.y * TILE + ty;
    int Col = blockIdx.x * TILE + tx;
    int key = blockIdx.x * TILE + ty;

    float score = 0.0f;
    for (int ph = 0; ph < (D + TILE - 1) / TILE; ++ph) {
        int d = ph * TILE + tx;
        q_tile[ty][tx] = Row < M && d < D ? Q[Row * D + d] : 0.0f;
        k_tile[ty][(tx + 2 * ty) % TILE] = key < N && d < D ? K[key * D + d] : 0.0f;
        __syncthreads();
        for (int j = 0; j < TILE; ++j)
            score += q_tile[ty][j] * k_tile[tx][(j + 2 * tx) % TILE];
        __syncthreads();
    }
    if (Row < M && Col < N)
        S[Row * N + Col] = score;
}
