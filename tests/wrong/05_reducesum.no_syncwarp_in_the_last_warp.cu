// refused: race, line 24: since Volta the lanes of a warp need __syncwarp() between the steps too

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
        for (int step = 32; step > 0; step /= 2)
            if (t < step)
                partials[t] += partials[t + step];
    }
    if (t == 0)
        sums[blockIdx.x] = partials[0];
}
