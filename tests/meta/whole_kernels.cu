// Kernels whose traffic was measured with Nsight Compute on an NVIDIA H200 at Width 256: see test_whole_kernels.py.

// Row from y and Col from x: a warp reads one row of N.
extern "C" __global__ void naive(const float *M, const float *N, float *P, int Width)
{
    int Row = blockIdx.y * blockDim.y + threadIdx.y;
    int Col = blockIdx.x * blockDim.x + threadIdx.x;
    if (Row < Width && Col < Width) {
        float Pvalue = 0.0f;
        for (int k = 0; k < Width; ++k)
            Pvalue += M[Row * Width + k] * N[k * Width + Col];
        P[Row * Width + Col] = Pvalue;
    }
}

// Row from x: a warp reads a column of M and writes a column of P.
extern "C" __global__ void uncoalesced(const float *M, const float *N, float *P, int Width)
{
    int Col = blockIdx.y * blockDim.y + threadIdx.y;
    int Row = blockIdx.x * blockDim.x + threadIdx.x;
    if (Row < Width && Col < Width) {
        float Pvalue = 0.0f;
        for (int k = 0; k < Width; ++k)
            Pvalue += M[Row * Width + k] * N[k * Width + Col];
        P[Row * Width + Col] = Pvalue;
    }
}

// Width is a multiple of 16.
extern "C" __global__ void tiled16(const float *M, const float *N, float *P, int Width)
{
    __shared__ float Mds[16][16];
    __shared__ float Nds[16][16];
    int tx = threadIdx.x, ty = threadIdx.y;
    int Row = blockIdx.y * 16 + ty, Col = blockIdx.x * 16 + tx;
    float Pvalue = 0.0f;
    for (int ph = 0; ph < Width / 16; ++ph) {
        Mds[ty][tx] = M[Row * Width + ph * 16 + tx];
        Nds[ty][tx] = N[(ph * 16 + ty) * Width + Col];
        __syncthreads();
        for (int k = 0; k < 16; ++k)
            Pvalue += Mds[ty][k] * Nds[k][tx];
        __syncthreads();
    }
    P[Row * Width + Col] = Pvalue;
}

// M's tile stored transposed, in rows of Row_of_M floats. Width is a multiple of 32.
template <int Row_of_M, bool First_barrier, bool Second_barrier>
__device__ void tile32(const float *M, const float *N, float *P, int Width)
{
    __shared__ float Mds[32][Row_of_M];
    __shared__ float Nds[32][32];
    int tx = threadIdx.x, ty = threadIdx.y;
    int Row = blockIdx.y * 32 + ty, Col = blockIdx.x * 32 + tx;
    float Pvalue = 0.0f;
    for (int ph = 0; ph < Width / 32; ++ph) {
        Mds[tx][ty] = M[Row * Width + ph * 32 + tx];
        Nds[ty][tx] = N[(ph * 32 + ty) * Width + Col];
        if (First_barrier)
            __syncthreads();
        for (int k = 0; k < 32; ++k)
            Pvalue += Mds[k][ty] * Nds[k][tx];
        if (Second_barrier)
            __syncthreads();
    }
    P[Row * Width + Col] = Pvalue;
}

extern "C" __global__ void transposed(const float *M, const float *N, float *P, int Width)
{
    tile32<32, true, true>(M, N, P, Width);
}

extern "C" __global__ void padded(const float *M, const float *N, float *P, int Width)
{
    tile32<33, true, true>(M, N, P, Width);
}

extern "C" __global__ void no_first_barrier(const float *M, const float *N, float *P, int Width)
{
    tile32<33, false, true>(M, N, P, Width);
}

extern "C" __global__ void no_second_barrier(const float *M, const float *N, float *P, int Width)
{
    tile32<33, true, false>(M, N, P, Width);
}
