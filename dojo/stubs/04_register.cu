// Kata 04: a matrix product whose sums live in registers, with the parameters of BLAS (SGEMM).
//
// Task     C = alpha * A * B + beta * C for float32 matrices stored row by row: A has M rows of K, B has K rows of N,
//          C has M rows of N, any M, N, K >= 1. With beta = 0 C is written and never read: it may hold NaN, as in BLAS.
//          A block computes a tile of BM x BN elements of C, a thread TM x TN of them: then a number that comes
//          from shared memory serves TM or TN multiplications, not one as in kata 02.
// Launch   one-dimensional blocks of (BN / TN) * (BM / TM) threads, in a grid of ceil(N / BN) x ceil(M / BM) blocks.
//          Shared memory is static; a file that defines SHARED_BYTES gets so many bytes of dynamic shared memory.
// Graded   compiles: this name, these parameters, constants BM BN BK TM TN (yours to change; the #ifndef lets
//                    `make kata=register tune` vary them); a card must be able to launch what they ask for
//          safe:     no access out of bounds or off its alignment, no read of what nobody wrote, no race, and every
//                    thread of a block reaches every barrier
//          result:   right at ragged M, N, K, below one tile, with many steps, with rows that are not 16-byte aligned,
//                    for (alpha, beta) = (1, 0), (0.5, -3), (0, 0.5), (2, 1), (1, 0.5)
//          traffic:  more than 0.75 warp FMAs for each wavefront of shared loads (kata 02 has 0.5), no more sectors
//                    from global memory than 1.25 times what BM and BN promise, no bank conflicts, no spills
//          speed:    on a GPU, beside cuBLAS
// Lesson   katas/04_register.md

#ifndef BM
#define BM 128  // rows of C in a block's tile
#endif
#ifndef BN
#define BN 128  // columns of C in a block's tile
#endif
#ifndef BK
#define BK 8  // columns of A, and rows of B, that are in shared memory at a time
#endif
#ifndef TM
#define TM 8  // rows of C in a thread's tile
#endif
#ifndef TN
#define TN 8  // columns of C in a thread's tile
#endif

// ---- the hole begins: about 160 lines; helper functions may stand above the kernel --------
extern "C" __global__ void __launch_bounds__((BN / TN) * (BM / TM))
sgemm_register(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C)
{
}
// ---- the hole ends ------------------------------------------------------------------------
