// refused: traffic, line 18: the step's distance doubles, so the lanes meet on ever fewer banks

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

    for (int step = 1; step < THREADS; step *= 2) {
        if (2 * step * t < THREADS)
            partials[2 * step * t] += partials[2 * step * t + step];
        __syncthreads();
    }
    if (t == 0)
        sums[blockIdx.x] = partials[0];
}
