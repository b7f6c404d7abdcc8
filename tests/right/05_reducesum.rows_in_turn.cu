// accepted: a block takes 64 rows one after the other, all its threads at each: many steps, but an end
constexpr int THREADS = 128;
constexpr int ROWS_PER_BLOCK = 64;

extern "C" __global__ void row_sum(const float *X, float *sums, int rows, int cols)
{
    __shared__ float partials[THREADS / 32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int r = blockIdx.x * ROWS_PER_BLOCK; r < rows && r < (blockIdx.x + 1) * ROWS_PER_BLOCK; ++r) {
        float sum = 0.0f;
        for (int c = threadIdx.x; c < cols; c += THREADS)
            sum += X[static_cast<size_t>(r) * cols + c];
        for (int step = 16; step > 0; step /= 2)
            sum += __shfl_down_sync(0xffffffffu, sum, step);
        if (lane == 0)
            partials[warp] = sum;
        __syncthreads();
        if (threadIdx.x == 0)
            sums[r] = (partials[0] + partials[1]) + (partials[2] + partials[3]);
        __syncthreads();
    }
}
