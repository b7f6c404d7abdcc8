// accepted: loops over P, so that any grid would do

constexpr int TILE_WIDTH = 16;

extern "C" __global__ void matmul_naive(const float *M, const float *N, float *P, int Width)
{
    for (int Row = blockIdx.y * blockDim.y + threadIdx.y; Row < Width; Row += gridDim.y * blockDim.y)
        for (int Col = blockIdx.x * blockDim.x + threadIdx.x; Col < Width; Col += gridDim.x * blockDim.x) {
            float Pvalue = 0.0f;
            for (int k = 0; k < Width; ++k)
                Pvalue += M[Row * Width + k] * N[k * Width + Col];
            P[Row * Width + Col] = Pvalue;
        }
}
