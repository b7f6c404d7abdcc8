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
    __shared__ float k_tile[TILE][TILE];  // hole, 1 of 3

    int tx = threadIdx.x, ty = threadIdx.y;
    int Row = blockIdx.y * TILE + ty;  // of Q and of S
    int Col = blockIdx.x * TILE + tx;  // of S: the row of K that this thread multiplies with
    int key = blockIdx.x * TILE + ty;  // the row of K that this thread loads

    float score = 0.0f;
    for (int ph = 0; ph < (D + TILE - 1) / TILE; ++ph) {
        int d = ph * TILE + tx;  // the column of Q and of K that this thread loads
        // Zero outside: it adds nothing to any sum.
        k_tile[ty][tx] = key < N && d < D ? K[key * D + d] : 0.0f;  // hole, 2 of 3
        q_tile[ty][tx] = Row < M && d < D ? Q[Row * D + d] : 0.0f;
        __syncthreads();

        for (int j = 0; j < TILE; ++j)
            score += q_tile[ty][j] * k_tile[tx][j];  // hole, 3 of 3
        __syncthreads();
    }

    if (Row < M && Col < N)
        S[Row * N + Col] = score;
}
