// refused: timeout, line 13 or 14: a step of Width / TILE_WIDTH is zero below Width 16

constexpr int TILE_WIDTH = 16;

extern "C" __global__ void matmul_naive(const float *M, const float *N, float *P, int Width)
{
    int Row = blockIdx.y * TILE_WIDTH + threadIdx.y;
    int Col = blockIdx.x * TILE_WIDTH + threadIdx.x;
    int step = Width / TILE_WIDTH;

    if (Row < Width && Col < Width) {
        float Pvalue = 0.0f;
        for (int first = 0; first < Width; first += step)
            for (int k = first; k < min(first + step, Width); ++k)
                Pvalue += M[Row * Width + k] * N[k * Width + Col];
        P[Row * Width + Col] = Pvalue;
    }
}
