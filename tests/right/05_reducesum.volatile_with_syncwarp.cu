// accepted: the warp tail of the tree is volatile, and has its __syncwarp() between load and store too

constexpr int THREADS = 64;
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

    for (int step = THREADS / 2; step >= 32; step /= 2) {
        if (t < step)
            partials[t] += partials[t + step];
        __syncthreads();
    }
    if (t < 32) {
        volatile float *last = partials;
        for (int step = 16; step > 0; step /= 2) {
            float other = last[t + step];
            __syncwarp();
            last[t] = last[t] + other;
            __syncwarp();
        }
        if (t == 0)
            sums[blockIdx.x] = last[0];
    }
}
