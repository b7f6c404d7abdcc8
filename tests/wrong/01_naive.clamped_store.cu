// refused: race, line 14: threads over the edge store their zero into the last row and column, not nowhere

constexpr int TILE_WIDTH = 16;

extern "C" __global__ void matmul_naive(const float *M, const float *N, float *P, int Width)
{
    int Row = blockIdx.y * TILE_WIDTH + threadIdx.y;
    int Col = blockIdx.x * TILE_WIDTH + threadIdx.x;

    float Pvalue = 0.0f;
    if (Row < Width && Col < Width)
        for (int k = 0; k < Width; ++k)
            Pvalue += M[Row * Width + k] * N[k * Width + Col];
    P[min(Row, Width - 1) * Width + min(Col, Width - 1)] = Pvalue;
}
