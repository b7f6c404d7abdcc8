// refused: race, line 18 or 21: the next row's partials overwrite those that the first warp still reads

constexpr int THREADS = 256;
constexpr int ROWS_PER_BLOCK = 4;

extern "C" __global__ void row_sum(const float *X, float *sums, int rows, int cols)
{
    __shared__ float partials[THREADS / 32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    for (int r = blockIdx.x * ROWS_PER_BLOCK; r < min(rows, (int)(blockIdx.x + 1) * ROWS_PER_BLOCK); ++r) {
        float sum = 0.0f;
        for (int c = threadIdx.x; c < cols; c += THREADS)
            sum += X[(size_t)r * cols + c];
        for (int step = 16; step > 0; step /= 2)
            sum += __shfl_down_sync(0xffffffffu, sum, step);
        if (lane == 0)
            partials[warp] = sum;
        __syncthreads();
        if (warp == 0) {
            sum = lane < THREADS / 32 ? partials[lane] : 0.0f;
            for (int step = 16; step > 0; step /= 2)
                sum += __shfl_down_sync(0xffffffffu, sum, step);
            if (lane == 0)
                sums[r] = sum;
        }
    }
}
