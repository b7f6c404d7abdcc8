// refused: compile: neither ROWS_PER_BLOCK nor rows_per_block: nobody can tell the size of the grid

constexpr int THREADS = 256;

extern "C" __global__ void row_sum(const float *X, float *sums, int rows, int cols)
{
    int lane = threadIdx.x % 32;
    int r = blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    float sum = 0.0f;
    if (r < rows)
        for (int c = lane; c < cols; c += 32)
            sum += X[(size_t)r * cols + c];
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (lane == 0 && r < rows)
        sums[r] = sum;
}
