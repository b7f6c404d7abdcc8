// refused: uninitialised, line 21 or 23: all 32 partials are read, but there are 8 warps to write them

constexpr int THREADS = 256;
constexpr int ROWS_PER_BLOCK = 1;

extern "C" __global__ void row_sum(const float *X, float *sums, int rows, int cols)
{
    __shared__ float partials[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float *row = X + (size_t)blockIdx.x * cols;

    float sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += THREADS)
        sum += row[c];
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (lane == 0)
        partials[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = partials[lane];
        for (int step = 16; step > 0; step /= 2)
            sum += __shfl_down_sync(0xffffffffu, sum, step);
        if (lane == 0)
            sums[blockIdx.x] = sum;
    }
}
