// accepted: unrolled by hand, with a loop for the rest

constexpr int TILE_WIDTH = 16;

extern "C" __global__ void matmul_naive(const float *M, const float *N, float *P, int Width)
{
    int Row = blockIdx.y * TILE_WIDTH + threadIdx.y;
    int Col = blockIdx.x * TILE_WIDTH + threadIdx.x;

    if (Row < Width && Col < Width) {
        float Pvalue = 0.0f;
        int k = 0;
        for (; k + 3 < Width; k += 4) {
            Pvalue += M[Row * Width + k] * N[k * Width + Col];
            Pvalue += M[Row * Width + k + 1] * N[(k + 1) * Width + Col];
            Pvalue += M[Row * Width + k + 2] * N[(k + 2) * Width + Col];
            Pvalue += M[Row * Width + k + 3] * N[(k + 3) * Width + Col];
        }
        for (; k < Width; ++k)
            Pvalue += M[Row * Width + k] * N[k * Width + Col];
        P[Row * Width + Col] = Pvalue;
    }
}
