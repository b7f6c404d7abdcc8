// The read probe: what this card can read from memory, to set beside a row sum of the same matrix.
//
// It sums all of x and writes one value a block, so nothing but reading costs time: no rows, no edges.
//
// Launch   block THREADS, grid ceil(n4 / (THREADS * AT_ONCE)): a block for each 16 KiB, and the card gives
//          every multiprocessor the next one as it gets free. A grid that just fills the card, each block
//          with its share of x, read 1.5 % less on an H200: it ends when the slowest one has.
//          x starts on a multiple of 16 bytes, n4 is its number of float4s, partials holds a float a block.
// Timed    by dojo/speed.py on the very array that the candidate reads, in the same run and in turns, L2
//          flushed before each launch. The bytes that the candidate writes count for nothing: at 32 columns
//          they are 3 % more.

constexpr int THREADS = 256;
constexpr int AT_ONCE = 4;  // loads in flight a thread: 2,048 threads * 64 bytes = 128 KiB a multiprocessor

template <float4 load(const float4 *)>
__device__ void read(const float4 *x, float *partials, long long n4)
{
    long long i = static_cast<long long>(blockIdx.x) * (THREADS * AT_ONCE) + threadIdx.x;
    float4 zero = {0.0f, 0.0f, 0.0f, 0.0f}, four[AT_ONCE];
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k)
        four[k] = i + k * THREADS < n4 ? load(x + i + k * THREADS) : zero;
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k)
        sum += (four[k].x + four[k].y) + (four[k].z + four[k].w);

    __shared__ float warps[THREADS / 32];
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < THREADS / 32; ++warp)
            sum += warps[warp];
        partials[blockIdx.x] = sum;
    }
}

__device__ float4 once(const float4 *p) { return __ldcs(p); }

__device__ float4 plain(const float4 *p) { return *p; }

extern "C" __global__ void __launch_bounds__(THREADS) read_probe(const float4 *x, float *partials, long long n4)
{
    read<once>(x, partials, n4);
}

// For dojo/rounds.py: what L2 held before is gone once twice its size was read. Not by __ldcs: such lines make
// room for each other, and what others wrote stays. It cost the next kernel up to 8 % of its bandwidth.
extern "C" __global__ void __launch_bounds__(THREADS) flush_l2(const float4 *x, float *partials, long long n4)
{
    read<plain>(x, partials, n4);
}
