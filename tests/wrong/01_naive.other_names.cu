// refused: bounds, line 15: one step too many; the parameters are called A, B, C and n, as in other books

constexpr int TILE_WIDTH = 16;

extern "C" __global__ void matmul_naive(const float *A, const float *B, float *C, int n)
{
    int Row = blockIdx.y * TILE_WIDTH + threadIdx.y;
    int Col = blockIdx.x * TILE_WIDTH + threadIdx.x;

    if (Row >= n || Col >= n)
        return;
    float Pvalue = 0.0f;
    for (int k = 0; k <= n; ++k) {
        float a = k < n ? A[Row * n + k] : 0.0f;
        Pvalue += a * B[k * n + Col];
    }
    C[Row * n + Col] = Pvalue;
}
