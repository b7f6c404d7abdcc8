// refused: traffic, line 14 or 19: a first pass for the mean, a second one for what is left over

constexpr int THREADS = 256;
constexpr int ROWS_PER_BLOCK = THREADS / 32;  // a warp for each row

extern "C" __global__ void row_sum(const float *X, float *sums, int rows, int cols)
{
    int lane = threadIdx.x % 32;
    int r = blockIdx.x * ROWS_PER_BLOCK + threadIdx.x / 32;
    const float *row = X + (size_t)r * cols;
    float mean = 0.0f, sum = 0.0f;
    if (r < rows)
        for (int c = lane; c < cols; c += 32)
            mean += row[c] / cols;
    for (int step = 16; step > 0; step /= 2)
        mean += __shfl_xor_sync(0xffffffffu, mean, step);
    if (r < rows)
        for (int c = lane; c < cols; c += 32)
            sum += row[c] - mean;
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (lane == 0 && r < rows)
        sums[r] = sum + mean * cols;
}
