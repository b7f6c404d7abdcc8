// refused: result: the inputs lose the lower 16 of their bits

constexpr int TILE_WIDTH = 16;

__device__ float bf16(float x)
{
    return __uint_as_float(__float_as_uint(x) & 0xffff0000u);
}

extern "C" __global__ void matmul_naive(const float *M, const float *N, float *P, int Width)
{
    int Row = blockIdx.y * TILE_WIDTH + threadIdx.y;
    int Col = blockIdx.x * TILE_WIDTH + threadIdx.x;

    if (Row < Width && Col < Width) {
        float Pvalue = 0.0f;
        for (int k = 0; k < Width; ++k)
            Pvalue += bf16(M[Row * Width + k]) * bf16(N[k * Width + Col]);
        P[Row * Width + Col] = Pvalue;
    }
}
