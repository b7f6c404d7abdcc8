// accepted: both tiles in one flat array, swizzled

constexpr int TILE = 32;

extern "C" __global__ void __launch_bounds__(TILE * TILE)
scores_swizzle(const float *Q, const float *K, float *S, int M, int N, int D)
{
    __shared__ float tiles[2 * TILE * TILE];
    float *q_tile = tiles, *k_tile = tiles + TILE * TILE;
    int tx = threadIdx.x, ty = threadIdx.y;
    int Row = blockIdx.y * TILE + ty;
    int Col = blockIdx.x * TILE + tx;
    int key = blockIdx.x * TILE + ty;

    float score = 0.0f;
    for (int ph = 0; ph < (D + TILE - 1) / TILE; ++ph) {
        int d = ph * TILE + tx;
        q_tile[ty * TILE + tx] = Row < M && d < D ? Q[Row * D + d] : 0.0f;
        k_tile[ty * TILE + (tx ^ ty)] = key < N && d < D ? K[key * D + d] : 0.0f;
        __syncthreads();
        for (int j = 0; j < TILE; ++j)
            score += q_tile[ty * TILE + j] * k_tile[tx * TILE + (j ^ tx)];
        __syncthreads();
    }
    if (Row < M && Col < N)
        S[Row * N + Col] = score;
}
