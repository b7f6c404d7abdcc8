// refused: race, line 14: __ldg may find what P held before the launch, or some steps ago

constexpr int TILE_WIDTH = 16;

extern "C" __global__ void matmul_naive(const float *M, const float *N, float *P, int Width)
{
    int Row = blockIdx.y * TILE_WIDTH + threadIdx.y;
    int Col = blockIdx.x * TILE_WIDTH + threadIdx.x;
    if (Row >= Width || Col >= Width)
        return;
    float *Pvalue = &P[Row * Width + Col];
    *Pvalue = 0.0f;
    for (int k = 0; k < Width; ++k)
        *Pvalue = __ldg(Pvalue) + M[Row * Width + k] * N[k * Width + Col];
}
