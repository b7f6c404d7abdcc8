// accepted: each half of the warp has a row and a partial sum, and waits for its own lanes only

constexpr int THREADS = 64;
constexpr int ROWS_PER_BLOCK = 4;

extern "C" __global__ void row_sum(const float *X, float *sums, int rows, int cols)
{
    __shared__ float partials[THREADS];
    int t = threadIdx.x, lane = t % 16;
    int row = blockIdx.x * ROWS_PER_BLOCK + t / 16;
    unsigned mask = t % 32 < 16 ? 0x0000ffffu : 0xffff0000u;
    float sum = 0.0f;
    for (int c = lane; row < rows && c < cols; c += 16)
        sum += X[(size_t)row * cols + c];
    partials[t] = sum;
    __syncwarp(mask);
    for (int step = 8; step > 0; step /= 2) {
        if (lane < step)
            partials[t] += partials[t + step];
        __syncwarp(mask);
    }
    if (lane == 0 && row < rows)
        sums[row] = partials[t];
}
