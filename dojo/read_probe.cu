// The read probe: what this card can read from memory, to set beside a row sum of the same matrix.
//
// It sums all of x and writes one value a block, so nothing but reading costs time: no rows, no edges.
//
// Launch   block THREADS, grid 8 blocks for each multiprocessor: 2,048 threads, all that one holds.
//          x starts on a multiple of 16 bytes, n4 is its number of float4s, partials holds a float a block.
// Timed    by dojo/speed.py on the very array that the candidate reads, in the same run and in turns, L2
//          flushed before each launch. The bytes that the candidate writes count for nothing: at 32 columns
//          they are 3 % more.

constexpr int THREADS = 256;
constexpr int AT_ONCE = 4;  // loads in flight a thread: 2,048 threads * 64 bytes = 128 KiB a multiprocessor

extern "C" __global__ void __launch_bounds__(THREADS) read_probe(const float4 *x, float *partials, long long n4)
{
    long long stride = static_cast<long long>(gridDim.x) * THREADS;
    long long i = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x;
    float sum = 0.0f;
    for (; i + (AT_ONCE - 1) * stride < n4; i += AT_ONCE * stride) {
        float4 four[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k)
            four[k] = x[i + k * stride];
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k)
            sum += (four[k].x + four[k].y) + (four[k].z + four[k].w);
    }
    for (; i < n4; i += stride)
        sum += (x[i].x + x[i].y) + (x[i].z + x[i].w);

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
