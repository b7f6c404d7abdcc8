// solutions/02_tiled.cu for mlsys-lab's software GPU: one-dimensional blocks of 256 threads in a
// one-dimensional grid, and the tile's indices worked out from them. Warps and accesses are the same.
//
// The solution itself it cannot run (mlsys-lab 0.4.0): it refuses extern "C", constexpr (const and #define
// too), shared arrays of two dimensions and two variables in one declaration, and its CUDA C reads
// threadIdx.y and blockIdx.y as 0.

__global__ void matmul_tiled(const float *M, const float *N, float *P, int Width)
{
    __shared__ float Mds[256];
    __shared__ float Nds[256];

    int tx = threadIdx.x % 16;
    int ty = threadIdx.x / 16;
    int tiles = (Width + 15) / 16;
    int Row = blockIdx.x / tiles * 16 + ty;
    int Col = blockIdx.x % tiles * 16 + tx;

    float Pvalue = 0.0f;
    for (int ph = 0; ph < tiles; ++ph) {
        int m = ph * 16 + tx;
        int n = ph * 16 + ty;
        Mds[ty * 16 + tx] = Row < Width && m < Width ? M[Row * Width + m] : 0.0f;
        Nds[ty * 16 + tx] = n < Width && Col < Width ? N[n * Width + Col] : 0.0f;
        __syncthreads();

        for (int k = 0; k < 16; ++k)
            Pvalue += Mds[ty * 16 + k] * Nds[k * 16 + tx];
        __syncthreads();
    }

    if (Row < Width && Col < Width)
        P[Row * Width + Col] = Pvalue;
}
