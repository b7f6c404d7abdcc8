// refused: uninitialised, line 12: += reads P, which nobody has written

constexpr int TILE_WIDTH = 16;

extern "C" __global__ void matmul_naive(const float *M, const float *N, float *P, int Width)
{
    int Row = blockIdx.y * TILE_WIDTH + threadIdx.y;
    int Col = blockIdx.x * TILE_WIDTH + threadIdx.x;

    if (Row < Width && Col < Width) {
        for (int k = 0; k < Width; ++k)
            P[Row * Width + Col] += M[Row * Width + k] * N[k * Width + Col];
    }
}
