// refused: result, line 15: every element is stored one row too low, and the guard keeps the last row inside

constexpr int TILE_WIDTH = 16;

extern "C" __global__ void matmul_naive(const float *M, const float *N, float *P, int Width)
{
    int Row = blockIdx.y * TILE_WIDTH + threadIdx.y;
    int Col = blockIdx.x * TILE_WIDTH + threadIdx.x;

    if (Row < Width && Col < Width) {
        float Pvalue = 0.0f;
        for (int k = 0; k < Width; ++k)
            Pvalue += M[Row * Width + k] * N[k * Width + Col];
        if (Row + 1 < Width)
            P[(Row + 1) * Width + Col] = Pvalue;
    }
}
