// Kata 01: matrix multiplication, one thread for each element of the product.
//
// Task     P = M * N for square float32 matrices of any Width >= 1, stored row by row:
//          element (row, col) of M is M[row * Width + col]; the same for N and P.
// Launch   blocks of TILE_WIDTH x TILE_WIDTH threads (x is the fast axis of a warp), in a grid of
//          ceil(Width / TILE_WIDTH) x ceil(Width / TILE_WIDTH) blocks. No shared memory is needed.
// Graded   compiles: this name, these parameters, a constant TILE_WIDTH (yours to change)
//          safe:     no access outside M, N or P, no read of what nobody wrote, no race
//          result:   right at Width 1, 2, 15, 16, 17, 31, 33, 64, 100, 129 and one random Width
//          traffic:  coalesced: the threads of a warp read neighbouring elements of N
//          speed:    on a GPU, beside an uncoalesced version and cuBLAS
// Lesson   katas/01_naive.md

constexpr int TILE_WIDTH = 16;

extern "C" __global__ void matmul_naive(const float *M, const float *N, float *P, int Width)
{
    // ---- the hole begins: about 8 lines -------------------------------------------------------
    // ---- the hole ends ------------------------------------------------------------------------
}
