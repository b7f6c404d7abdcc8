// Kata 03: attention scores without bank conflicts.
//
// Task     S = Q * transpose(K), S[m][n] = sum over d of Q[m][d] * K[n][d], for float32 matrices stored
//          row by row: Q is M x D, K is N x D, S is M x N, with any M, N, D >= 1. The kernel below is
//          right and safe, but the 32 lanes of a warp read k_tile[tx][j] from 32 rows and one column:
//          32 words of one bank. Make every access to shared memory free of bank conflicts.
// Hole     the three lines marked so. One of them or two need to change, none needs another line.
// Launch   blocks of TILE x TILE threads (x is the fast axis of a warp), in a grid of
//          ceil(N / TILE) x ceil(M / TILE) blocks. Shared memory is static.
// Graded   compiles: this name, these parameters, a constant TILE (yours to change)
//          safe:     no access out of bounds, no read of what nobody wrote, no race, and every
//                    thread of a block reaches every barrier
//          result:   right at M x N x D = 1 x 1 x 1, 31 x 33 x 17, 64 x 64 x 64, 33 x 65 x 31,
//                    100 x 37 x 129 and one random size
//          traffic:  no bank conflicts at any of these sizes, and at 64 x 64 x 64 at most 1.25 times the
//                    sectors that tiles need; an extra mark for no more than 2 * TILE * TILE words
//                    of shared memory
//          speed:    on a GPU, at least twice as fast as this file was
// Lesson   katas/03_swizzle.md

constexpr int TILE = 32;

extern "C" __global__ void __launch_bounds__(TILE * TILE)
scores_swizzle(const float *Q, const float *K, float *S, int M, int N, int D)
{
    __shared__ float q_tile[TILE][TILE];
    __shared__ float k_tile[TILE][TILE];

    int tx = threadIdx.x, ty = threadIdx.y;
    int Row = blockIdx.y * TILE + ty;  // of Q and of S
    int Col = blockIdx.x * TILE + tx;  // of S: the row of K that this thread multiplies with
    int key = blockIdx.x * TILE + ty;  // the row of K that this thread loads

    auto load = [=](const float *matrix, int row, int rows, int d) {
        return row < rows && d < D ? matrix[row * D + d] : 0.0f;  // zero outside: it adds nothing to any sum
    };

    // Beyond the task: once the banks serve all at once, a phase waits for global memory. So the words of the
    // next phase are on their way, each in a register, while this one's are multiplied.
    float q = load(Q, Row, M, tx), k = load(K, key, N, tx);
    float score = 0.0f;
    for (int ph = 0; ph < (D + TILE - 1) / TILE; ++ph) {
        q_tile[ty][tx] = q;
        // Row r keeps its words by fours, four g in place g ^ (r % 8): a four is still one load of 16 bytes.
        k_tile[ty][(tx / 4 ^ ty % 8) * 4 + tx % 4] = k;
        __syncthreads();

        int d = (ph + 1) * TILE + tx;
        q = load(Q, Row, M, d);
        k = load(K, key, N, d);
        for (int j = 0; j < TILE; ++j)
            score += q_tile[ty][j] * k_tile[tx][(j / 4 ^ tx % 8) * 4 + j % 4];  // 8 lanes, 8 fours, 32 banks
        __syncthreads();
    }

    if (Row < M && Col < N)
        S[Row * N + Col] = score;
}
