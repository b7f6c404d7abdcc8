// refused: uninitialised, line 14: each warp adds to sums, which nobody has set to zero

constexpr int THREADS = 256;
constexpr int ROWS_PER_BLOCK = 1;

extern "C" __global__ void row_sum(const float *X, float *sums, int rows, int cols)
{
    float sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += THREADS)
        sum += X[(size_t)blockIdx.x * cols + c];
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0)
        atomicAdd(&sums[blockIdx.x], sum);
}
