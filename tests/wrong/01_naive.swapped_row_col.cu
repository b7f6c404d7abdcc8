// refused: traffic, line 13: Row from x: the lanes of a warp are Width elements apart (the result is right)

constexpr int TILE_WIDTH = 16;

extern "C" __global__ void matmul_naive(const float *M, const float *N, float *P, int Width)
{
    int Row = blockIdx.x * TILE_WIDTH + threadIdx.x;
    int Col = blockIdx.y * TILE_WIDTH + threadIdx.y;

    if (Row < Width && Col < Width) {
        float Pvalue = 0.0f;
        for (int k = 0; k < Width; ++k)
            Pvalue += M[Row * Width + k] * N[k * Width + Col];
        P[Row * Width + Col] = Pvalue;
    }
}
