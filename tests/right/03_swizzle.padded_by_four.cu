// accepted: rows of 36 words: the assembler joins four loads along j, and 16-byte reads do not meet in a bank

constexpr int TILE = 32;

extern "C" __global__ void __launch_bounds__(TILE * TILE)
scores_swizzle(const float *Q, const float *K, float *S, int M, int N, int D)
{
    __shared__ float q_tile[TILE][TILE];
    __shared__ float k_tile[TILE][TILE + 4];
    int tx = threadIdx.x, ty = threadIdx.y;
    int Row = blockIdx.y * TILE + ty;
    int Col = blockIdx.x * TILE + tx;
    int key = blockIdx.x * TILE + ty;

    float score = 0.0f;
    for (int ph = 0; ph < (D + TILE - 1) / TILE; ++ph) {
        int d = ph * TILE + tx;
        q_tile[ty][tx] = Row < M && d < D ? Q[Row * D + d] : 0.0f;
        k_tile[ty][tx] = key < N && d < D ? K[key * D + d] : 0.0f;
        __syncthreads();
        for (int j = 0; j < TILE; ++j)
            score += q_tile[ty][j] * k_tile[tx][j];
        __syncthreads();
    }
    if (Row < M && Col < N)
        S[Row * N + Col] = score;
}
