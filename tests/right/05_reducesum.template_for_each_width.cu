// accepted: rows_per_block(cols), without __host__ __device__, and a template choose the same number of lanes

#define THREADS 192

__host__ __device__ constexpr int lanes_for(int cols)
{
    return cols < 8 ? 1 : cols < 512 ? 8 : 32;
}

constexpr int rows_per_block(int cols)
{
    return THREADS / lanes_for(cols);
}

template <int Lanes>
__device__ void sum_with(const float *X, float *sums, int rows, int cols)
{
    int lane = threadIdx.x % Lanes;
    int r = blockIdx.x * (THREADS / Lanes) + threadIdx.x / Lanes;
    float sum = 0.0f;
    for (int c = lane; r < rows && c < cols; c += Lanes)
        sum += X[(size_t)r * cols + c];
    for (int step = Lanes / 2; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, step, Lanes);
    if (lane == 0 && r < rows)
        sums[r] = sum;
}

__global__ void row_sum(const float *X, float *sums, int rows, int cols)
{
    switch (lanes_for(cols)) {
        case 1: return sum_with<1>(X, sums, rows, cols);
        case 8: return sum_with<8>(X, sums, rows, cols);
        default: return sum_with<32>(X, sums, rows, cols);
    }
}
