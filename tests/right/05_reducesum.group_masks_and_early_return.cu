// accepted: 8 lanes a row; groups without a row return, and each shuffle names its own group only

constexpr int THREADS = 128;
enum { ROWS_PER_BLOCK = THREADS / 8 };

extern "C" __global__ void row_sum(const float *X, float *sums, int rows, int cols)
{
    int lane = threadIdx.x % 8;
    int r = blockIdx.x * ROWS_PER_BLOCK + threadIdx.x / 8;
    if (r >= rows)
        return;
    unsigned group = 0xffu << (threadIdx.x % 32 / 8 * 8);

    float sum = 0.0f;
    for (int c = lane; c < cols; c += 8)
        sum += X[(size_t)r * cols + c];
    for (int step = 4; step > 0; step /= 2)
        sum += __shfl_down_sync(group, sum, step, 8);
    if (lane == 0)
        sums[r] = sum;
}
