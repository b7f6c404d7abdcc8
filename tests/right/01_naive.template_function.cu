// accepted: a template does the work, the kernel has a C++ name

constexpr int TILE_WIDTH = 16;

template <int Tile>
__device__ void element(const float *M, const float *N, float *P, int Width)
{
    int Row = blockIdx.y * Tile + threadIdx.y;
    int Col = blockIdx.x * Tile + threadIdx.x;
    if (Row >= Width || Col >= Width)
        return;
    float Pvalue = 0.0f;
    for (int k = 0; k < Width; ++k)
        Pvalue += M[Row * Width + k] * N[k * Width + Col];
    P[Row * Width + Col] = Pvalue;
}

__global__ void matmul_naive(const float *M, const float *N, float *P, int Width)
{
    element<TILE_WIDTH>(M, N, P, Width);
}
