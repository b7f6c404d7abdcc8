// refused: bounds, line 14: rows of M begin at multiples of 16 bytes only if Width is a multiple of 4

constexpr int TILE_WIDTH = 16;

extern "C" __global__ void matmul_naive(const float *M, const float *N, float *P, int Width)
{
    int Row = blockIdx.y * TILE_WIDTH + threadIdx.y;
    int Col = blockIdx.x * TILE_WIDTH + threadIdx.x;

    if (Row < Width && Col < Width) {
        float Pvalue = 0.0f;
        int k = 0;
        for (; k + 3 < Width; k += 4) {
            float4 four = *reinterpret_cast<const float4 *>(&M[Row * Width + k]);
            Pvalue += four.x * N[k * Width + Col];
            Pvalue += four.y * N[(k + 1) * Width + Col];
            Pvalue += four.z * N[(k + 2) * Width + Col];
            Pvalue += four.w * N[(k + 3) * Width + Col];
        }
        for (; k < Width; ++k)
            Pvalue += M[Row * Width + k] * N[k * Width + Col];
        P[Row * Width + Col] = Pvalue;
    }
}
