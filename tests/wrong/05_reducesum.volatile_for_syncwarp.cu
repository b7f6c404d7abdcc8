// refused: race, line 23 or 24 or 25 or 26 or 27 or 28: volatile orders nothing between lanes

constexpr int THREADS = 256;
constexpr int ROWS_PER_BLOCK = 1;

extern "C" __global__ void row_sum(const float *X, float *sums, int rows, int cols)
{
    __shared__ float partials[THREADS];
    int t = threadIdx.x;
    float sum = 0.0f;
    for (int c = t; c < cols; c += THREADS)
        sum += X[(size_t)blockIdx.x * cols + c];
    partials[t] = sum;
    __syncthreads();

    for (int step = THREADS / 2; step > 32; step /= 2) {
        if (t < step)
            partials[t] += partials[t + step];
        __syncthreads();
    }
    if (t < 32) {
        volatile float *last = partials;
        last[t] += last[t + 32];
        last[t] += last[t + 16];
        last[t] += last[t + 8];
        last[t] += last[t + 4];
        last[t] += last[t + 2];
        last[t] += last[t + 1];
    }
    if (t == 0)
        sums[blockIdx.x] = partials[0];
}
