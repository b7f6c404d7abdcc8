// accepted: pairs of words, in rows of 34

constexpr int TILE = 32;

extern "C" __global__ void __launch_bounds__(TILE * TILE)
scores_swizzle(const float *Q, const float *K, float *S, int M, int N, int D)
{
    __shared__ float2 q_tile[TILE][TILE / 2];
    __shared__ float2 k_tile[TILE][TILE / 2 + 1];
    int tx = threadIdx.x, ty = threadIdx.y;
    int Row = blockIdx.y * TILE + ty;
    int Col = blockIdx.x * TILE + tx;
    int key = blockIdx.x * TILE + ty;

    float score = 0.0f;
    for (int ph = 0; ph < (D + TILE - 1) / TILE; ++ph) {
        int d = ph * TILE + tx;
        ((float *)q_tile[ty])[tx] = Row < M && d < D ? Q[Row * D + d] : 0.0f;
        ((float *)k_tile[ty])[tx] = key < N && d < D ? K[key * D + d] : 0.0f;
        __syncthreads();
        for (int j = 0; j < TILE / 2; ++j) {
            float2 q = q_tile[ty][j], k = k_tile[tx][j];
            score += q.x * k.x + q.y * k.y;
        }
        __syncthreads();
    }
    if (Row < M && Col < N)
        S[Row * N + Col] = score;
}
