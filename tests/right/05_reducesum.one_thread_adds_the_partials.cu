// accepted: thread 0 adds the eight partial sums in a loop

constexpr int THREADS = 256;
constexpr int ROWS_PER_BLOCK = 1;

extern "C" __global__ void row_sum(const float *X, float *sums, int rows, int cols)
{
    __shared__ float partials[THREADS / 32];
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
    if (threadIdx.x == 0) {
        for (int w = 1; w < THREADS / 32; ++w)
            sum += partials[w];
        sums[blockIdx.x] = sum;
    }
}
