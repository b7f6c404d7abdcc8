// refused: result, line 23: the helper returns an int, which drops the fraction

constexpr int THREADS = 256;
constexpr int ROWS_PER_BLOCK = THREADS / 32;  // a warp for each row

__device__ int warp_sum(float sum)
{
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    return sum;
}

extern "C" __global__ void row_sum(const float *X, float *sums, int rows, int cols)
{
    int lane = threadIdx.x % 32;
    int r = blockIdx.x * ROWS_PER_BLOCK + threadIdx.x / 32;
    float sum = 0.0f;
    if (r < rows)
        for (int c = lane; c < cols; c += 32)
            sum += X[(size_t)r * cols + c];
    sum = warp_sum(sum);
    if (lane == 0 && r < rows)
        sums[r] = sum;
}
