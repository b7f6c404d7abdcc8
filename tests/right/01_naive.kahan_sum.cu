// accepted: a compensated sum

constexpr int TILE_WIDTH = 16;

extern "C" __global__ void matmul_naive(const float *M, const float *N, float *P, int Width)
{
    int Row = blockIdx.y * TILE_WIDTH + threadIdx.y;
    int Col = blockIdx.x * TILE_WIDTH + threadIdx.x;

    if (Row < Width && Col < Width) {
        float Pvalue = 0.0f, lost = 0.0f;
        for (int k = 0; k < Width; ++k) {
            float term = __fmul_rn(M[Row * Width + k], N[k * Width + Col]) - lost;
            float sum = __fadd_rn(Pvalue, term);
            lost = __fsub_rn(__fsub_rn(sum, Pvalue), term);
            Pvalue = sum;
        }
        P[Row * Width + Col] = Pvalue;
    }
}
