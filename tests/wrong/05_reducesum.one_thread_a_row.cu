// refused: traffic, line 12: the lanes of a warp read down a column, 32 sectors for 32 floats

constexpr int THREADS = 256;
constexpr int ROWS_PER_BLOCK = THREADS;

extern "C" __global__ void row_sum(const float *X, float *sums, int rows, int cols)
{
    int r = blockIdx.x * THREADS + threadIdx.x;
    if (r < rows) {
        float sum = 0.0f;
        for (int c = 0; c < cols; ++c)
            sum += X[(size_t)r * cols + c];
        sums[r] = sum;
    }
}
