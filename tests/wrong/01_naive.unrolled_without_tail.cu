// refused: bounds, line 14: the second product of a pair lies outside when Width is odd

constexpr int TILE_WIDTH = 16;

extern "C" __global__ void matmul_naive(const float *M, const float *N, float *P, int Width)
{
    int Row = blockIdx.y * TILE_WIDTH + threadIdx.y;
    int Col = blockIdx.x * TILE_WIDTH + threadIdx.x;

    if (Row < Width && Col < Width) {
        float Pvalue = 0.0f;
        for (int k = 0; k < Width; k += 2) {
            Pvalue += M[Row * Width + k] * N[k * Width + Col];
            Pvalue += M[Row * Width + k + 1] * N[(k + 1) * Width + Col];
        }
        P[Row * Width + Col] = Pvalue;
    }
}
