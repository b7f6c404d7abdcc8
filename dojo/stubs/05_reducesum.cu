// Kata 05: the sum of each row.
//
// Task     sums[r] = the sum of row r of X, a float32 matrix of any rows >= 1 and cols >= 1, stored
//          row by row without gaps: at 7 x 31, row 1 begins 124 bytes into X.
// Launch   a one-dimensional block of THREADS threads, in a grid of ceil(rows / ROWS_PER_BLOCK) blocks.
//          Both are constants of yours, to be defined in this file. Instead of ROWS_PER_BLOCK it may
//          define constexpr int rows_per_block(int cols), so that short and long rows are shared out in
//          different ways. Shared memory is static; sums holds nothing at first.
// Graded   compiles: this name, these parameters, THREADS, and ROWS_PER_BLOCK or rows_per_block
//          safe:     no access out of bounds, misaligned or to what nobody wrote, no race, and every
//                    lane that a shuffle or a barrier names arrives there
//          result:   right at 1 x 1, 1 x 20011, 5003 x 1, 7 x 31, 64 x 33, 33 x 4096, 5 x 4097, 64 x 2048
//                    and one random size; on a GPU also 1000003 x 1 and 1 x 1000003, more precisely
//                    than one serial sum in float32 could be
//          traffic:  at 64 x 2048 each element read once, at most 1.05 times the fewest sectors loaded
//                    from global memory, and no bank conflicts
//          speed:    on a GPU, beside a kernel that only reads, at short, middle and long rows
// Lesson   katas/05_reducesum.md

// ---- the hole begins: about 135 lines; a first version, a warp for each row, needs 12 ---------
constexpr int THREADS = 256;

extern "C" __global__ void row_sum(const float *X, float *sums, int rows, int cols)
{
}
// ---- the hole ends ----------------------------------------------------------------------------
