// accepted: the XOR of single words instead of fours; 64 registers, so one block where two would fit

constexpr int TILE = 32;

extern "C" __global__ void __launch_bounds__(TILE * TILE)
scores_swizzle(const float *Q, const float *K, float *S, int M, int N, int D)
{
    __shared__ float q_tile[TILE][TILE];
    __shared__ float k_tile[TILE][TILE];  // hole, 1 of 3

    int tx = threadIdx.x, ty = threadIdx.y;
    int Row = blockIdx.y * TILE + ty;  // of Q and of S
    int Col = blockIdx.x * TILE + tx;  // of S: the row of K that this thread multiplies with
    int key = blockIdx.x * TILE + ty;  // the row of K that this thread loads

    float score = 0.0f;
    for (int ph = 0; ph < (D + TILE - 1) / TILE; ++ph) {
        int d = ph * TILE + tx;  // the column of Q and of K that this thread loads
        // Zero outside: it adds nothing to any sum.
        q_tile[ty][tx] = Row < M && d < D ? Q[Row * D + d] : 0.0f;
        k_tile[ty][tx ^ ty] = key < N && d < D ? K[key * D + d] : 0.0f;  // row r keeps word c in column c ^ r
        __syncthreads();

        for (int j = 0; j < TILE; ++j)
            score += q_tile[ty][j] * k_tile[tx][j ^ tx];  // 32 lanes, 32 columns, 32 banks
        __syncthreads();
    }

    if (Row < M && Col < N)
        S[Row * N + Col] = score;
}
