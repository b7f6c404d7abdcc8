// refused: result, line 17: the lanes are two elements apart, and so is what they add

constexpr int THREADS = 256;
constexpr int ROWS_PER_BLOCK = THREADS / 32;  // a warp for each row

extern "C" __global__ void row_sum(const float *X, float *sums, int rows, int cols)
{
    int lane = threadIdx.x % 32;
    int r = blockIdx.x * ROWS_PER_BLOCK + threadIdx.x / 32;
    float sum = 0.0f;
    if (r < rows)
        for (int c = 2 * lane; c < cols; c += 64)
            sum += X[(size_t)r * cols + c];
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (lane == 0 && r < rows)
        sums[r] = sum;
}
