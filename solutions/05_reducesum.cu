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

// ---- the hole begins: about 115 lines; a first version, a warp for each row, needs 12 ---------
constexpr int THREADS = 256;
constexpr int AT_ONCE = 4;  // 16-byte loads that a thread starts before it waits for the first of them

// The threads that share a row: AT_ONCE float4s each up to 512 columns, a warp up to 2048, the whole
// block beyond. Never fewer than 8, see Row::edge.
__host__ __device__ constexpr int threads_per_row(int cols)
{
    return cols <= 128 ? 8 : cols <= 256 ? 16 : cols <= 2048 ? 32 : THREADS;
}

// A row too short for AT_ONCE float4s a thread leaves memory idle, so a thread takes part in several.
__host__ __device__ constexpr int rows_per_thread(int cols)
{
    return cols <= 32 ? 4 : cols <= 64 ? 2 : 1;
}

__host__ __device__ constexpr int rows_per_block(int cols)
{
    return THREADS / threads_per_row(cols) * rows_per_thread(cols);
}

// A row, cut so that its middle can be loaded by float4, which must lie on a multiple of 16 bytes.
struct Row {
    const float *x;  // the first element
    int head;        // elements before the first such multiple: 0 to 3
    int fours;       // float4s from there on
    int edges;       // elements outside them: the head, and 0 to 3 after the last float4

    __device__ Row(const float *x, int cols) : x(x)
    {
        int past = reinterpret_cast<size_t>(x) / sizeof(float) % 4;
        head = min(cols, (4 - past) % 4);
        fours = (cols - head) / 4;
        edges = cols - 4 * fours;
    }

    // __ldcs: a load of what is used once, so the caches may drop it first.
    __device__ float4 four(int i) const
    {
        float4 zero = {0.0f, 0.0f, 0.0f, 0.0f};
        return i < fours ? __ldcs(reinterpret_cast<const float4 *>(x + head) + i) : zero;
    }

    // Both ends in one load: at most 6 elements, so 8 threads reach them all.
    __device__ float edge(int i) const
    {
        return i < edges ? x[i < head ? i : i + 4 * fours] : 0.0f;
    }
};

// The sums over groups of `width` neighbouring lanes, Count at once, in each group's first lane.
// All 32 lanes of the warp must come here.
template <int Count>
__device__ void sum_lanes(float (&sum)[Count], int width)
{
    for (int step = width / 2; step > 0; step /= 2)
#pragma unroll
        for (int k = 0; k < Count; ++k)
            sum[k] += __shfl_down_sync(0xffffffffu, sum[k], step, width);
}

// The work of one block, where each thread takes part in Rows rows.
template <int Rows>
__device__ void sum_rows(const float *X, float *sums, int rows, int cols)
{
    constexpr int FOURS = AT_ONCE / Rows;  // float4s of one row that are loaded at once
    int threads = Rows > 1 ? 8 : threads_per_row(cols);  // a constant 8 saves short rows the divisions
    int groups = THREADS / threads;  // rows that the block has in hand at once
    int t = threadIdx.x % threads;   // which of the threads of its row this one is
    long long r = static_cast<long long>(blockIdx.x) * groups * Rows + threadIdx.x / threads;

    auto row = [=](int k) {  // the k-th row of this thread: without elements if X has no such row
        long long mine = r + k * groups;
        return Row(X + mine * cols, mine < rows ? cols : 0);
    };

    float sum[Rows];
#pragma unroll
    for (int k = 0; k < Rows; ++k)
        sum[k] = row(k).edge(t);
    int i = t;
    do {
        float4 four[Rows][FOURS];
#pragma unroll
        for (int k = 0; k < Rows; ++k)
#pragma unroll
            for (int j = 0; j < FOURS; ++j)
                four[k][j] = row(k).four(i + j * threads);
#pragma unroll
        for (int k = 0; k < Rows; ++k)
#pragma unroll
            for (int j = 0; j < FOURS; ++j)
                sum[k] += (four[k][j].x + four[k][j].y) + (four[k][j].z + four[k][j].w);
        i += FOURS * threads;
    } while (Rows == 1 && i < cols / 4);  // rows that short are done at once
    sum_lanes(sum, min(threads, 32));

    if (threads > 32) {
        __shared__ float partials[THREADS / 32];  // the sum of each warp
        int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        if (lane == 0)
            partials[warp] = sum[0];
        __syncthreads();  // all partials are there before the first warp reads them
        if (warp == 0) {
            sum[0] = lane < THREADS / 32 ? partials[lane] : 0.0f;
            sum_lanes(sum, 32);
        }
    }
#pragma unroll
    for (int k = 0; k < Rows; ++k)
        if (t == 0 && r + k * groups < rows)
            sums[r + k * groups] = sum[k];
}

extern "C" __global__ void row_sum(const float *X, float *sums, int rows, int cols)
{
    switch (rows_per_thread(cols)) {
        case 4: return sum_rows<4>(X, sums, rows, cols);
        case 2: return sum_rows<2>(X, sums, rows, cols);
        default: return sum_rows<1>(X, sums, rows, cols);
    }
}
// ---- the hole ends ----------------------------------------------------------------------------
