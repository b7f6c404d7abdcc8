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
constexpr int THREADS = 512;

// The threads that share a row: each has at least 4 float4s of it to load at once, 6 where its warps must
// wait for each other in the end. Never fewer than 8, see Row::edge.
__host__ __device__ constexpr int threads_per_row(int cols)
{
    if (cols < 1536)
        return cols < 260 ? 8 : cols < 516 ? 16 : 32;
    return cols < 3072 ? 64 : cols < 16384 ? 128 : THREADS;
}

// A row too short for that leaves memory idle, so a thread takes part in several.
__host__ __device__ constexpr int rows_per_thread(int cols)
{
    return cols < 68 ? 4 : cols < 132 ? 2 : 1;
}

__host__ __device__ constexpr int rows_per_block(int cols)
{
    return THREADS / threads_per_row(cols) * rows_per_thread(cols);
}

// A row, cut so that its middle can be loaded by float4. The middle begins on a multiple of Align floats: a float4
// needs 4; with 32, a cache line, the 512 bytes of a warp are four lines, not parts of five.
template <int Align>
struct Row {
    const float *x;  // the first element
    int head;        // elements before the first such multiple: 0 to Align - 1
    int fours;       // float4s from there on
    int edges;       // elements outside them: the head, and 0 to 3 after the last float4

    __device__ Row(const float *x, int cols) : x(x)
    {
        int past = reinterpret_cast<size_t>(x) / sizeof(float) % Align;
        head = min(cols, (Align - past) % Align);
        fours = (cols - head) / 4;
        edges = cols - 4 * fours;
    }

    // __ldcs: a load of what is used once, so the caches may drop it first.
    __device__ float4 four(int i) const
    {
        float4 zero = {0.0f, 0.0f, 0.0f, 0.0f};
        return i < fours ? __ldcs(reinterpret_cast<const float4 *>(x + head) + i) : zero;
    }

    // Both ends in one load: at most Align + 2 elements, so 8 threads reach them all, or 64 those of lines.
    __device__ float edge(int i) const
    {
        return i < edges ? x[i < head ? i : i + 4 * fours] : 0.0f;
    }
};

// The sums over groups of Width neighbouring lanes, Count at once, in each group's first lane.
// All 32 lanes of the warp must come here.
template <int Width, int Count>
__device__ void sum_lanes(float (&sum)[Count])
{
#pragma unroll
    for (int step = Width / 2; step > 0; step /= 2)
#pragma unroll
        for (int k = 0; k < Count; ++k)
            sum[k] += __shfl_down_sync(0xffffffffu, sum[k], step, Width);
}

// The work of one block: Threads share a row, each takes part in so many Rows, and of each of these starts
// so many loads of Fours before it waits for the first.
template <int Threads, int Rows, int Fours>
__device__ void sum_rows(const float *X, float *sums, int rows, int cols)
{
    constexpr int GROUPS = THREADS / Threads;  // rows that the block has in hand at once
    int t = threadIdx.x % Threads;             // which of the threads of its row this one is
    long long r = static_cast<long long>(blockIdx.x) * GROUPS * Rows + threadIdx.x / Threads;

    auto row = [=](int k) {  // the k-th row of this thread: without elements if X has no such row
        long long mine = r + k * GROUPS;
        return Row<Threads < 64 ? 4 : 32>(X + mine * cols, mine < rows ? cols : 0);
    };

    float sum[Rows];
#pragma unroll
    for (int k = 0; k < Rows; ++k)
        sum[k] = row(k).edge(t);
    int i = t;
    do {
        float4 four[Rows][Fours];
#pragma unroll
        for (int k = 0; k < Rows; ++k)
#pragma unroll
            for (int j = 0; j < Fours; ++j)
                four[k][j] = row(k).four(i + j * Threads);
#pragma unroll
        for (int k = 0; k < Rows; ++k)
#pragma unroll
            for (int j = 0; j < Fours; ++j)
                sum[k] += (four[k][j].x + four[k][j].y) + (four[k][j].z + four[k][j].w);
        i += Fours * Threads;
    } while (Rows == 1 && i < cols / 4);  // shorter rows are done at once
    sum_lanes<Threads < 32 ? Threads : 32>(sum);

    if (Threads > 32) {
        __shared__ float partials[THREADS / 32];  // the sum of each warp
        int warp = threadIdx.x / 32;
        if (t % 32 == 0)
            partials[warp] = sum[0];
        __syncthreads();  // all partials are there before the first warp of each row reads its row's
        if (t < 32) {
            sum[0] = t < Threads / 32 ? partials[warp + t] : 0.0f;
            sum_lanes<32>(sum);
        }
    }
#pragma unroll
    for (int k = 0; k < Rows; ++k)
        if (t == 0 && r + k * GROUPS < rows)
            sums[r + k * GROUPS] = sum[k];
}

// At least two blocks must fit on a multiprocessor, a modest wish: that allows 64 registers a thread, enough for
// all that it loads at once. Else the compiler saves registers and waits for one load before it starts the next.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
row_sum(const float *X, float *sums, int rows, int cols)
{
    if (cols < 36)  // at most 8 float4s, one for each thread
        return sum_rows<8, 4, 1>(X, sums, rows, cols);
    if (cols < 68)
        return sum_rows<8, 4, 2>(X, sums, rows, cols);
    if (cols < 132)
        return sum_rows<8, 2, 4>(X, sums, rows, cols);
    switch (threads_per_row(cols)) {
        case 8: return sum_rows<8, 1, 8>(X, sums, rows, cols);
        case 16: return sum_rows<16, 1, 8>(X, sums, rows, cols);
        case 32: return sum_rows<32, 1, 8>(X, sums, rows, cols);
        case 64: return sum_rows<64, 1, 8>(X, sums, rows, cols);
        case 128: return sum_rows<128, 1, 8>(X, sums, rows, cols);
        default: return sum_rows<THREADS, 1, 8>(X, sums, rows, cols);
    }
}
// ---- the hole ends ----------------------------------------------------------------------------
