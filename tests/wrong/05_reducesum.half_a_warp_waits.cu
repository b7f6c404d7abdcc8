// refused: race, line 26: the upper half of the warp moves on before the lower half has read where

constexpr int THREADS = 32;
constexpr int ROWS_PER_BLOCK = 8;

extern "C" __global__ void row_sum(const float *X, float *sums, int rows, int cols)
{
    __shared__ int first;  // of two rows, one for each half of the warp
    int lane = threadIdx.x, half = lane / 16;
    unsigned mask = half ? 0xffff0000u : 0x0000ffffu;
    if (lane == 16)
        first = blockIdx.x * ROWS_PER_BLOCK;
    for (int turn = 0; turn < ROWS_PER_BLOCK / 2; ++turn) {
        __syncwarp();
        int row = first + half;
        float sum = 0.0f;
        for (int c = lane % 16; row < rows && c < cols; c += 16)
            sum += X[(size_t)row * cols + c];
        for (int step = 8; step > 0; step /= 2)
            sum += __shfl_down_sync(mask, sum, step, 16);
        if (lane % 16 == 0 && row < rows)
            sums[row] = sum;

        __syncwarp(mask);
        if (lane == 16)
            first = row + 1;
    }
}
