// refused: result, line 14: two columns for each thread, of which it computes one

constexpr int TILE_WIDTH = 16;

extern "C" __global__ void matmul_naive(const float *M, const float *N, float *P, int Width)
{
    int Row = blockIdx.y * TILE_WIDTH + threadIdx.y;
    int Col = 2 * (blockIdx.x * TILE_WIDTH + threadIdx.x);

    if (Row < Width && Col < Width) {
        float Pvalue = 0.0f;
        for (int k = 0; k < Width; ++k)
            Pvalue += M[Row * Width + k] * N[k * Width + Col];
        P[Row * Width + Col] = Pvalue;
    }
}
