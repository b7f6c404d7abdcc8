# A grader on the simulator, for machines without NVIDIA's compiler (macOS) or without Python:
#
#     docker build -t katas .
#     docker run --rm -it -v "$PWD":/kata katas kata=tiled test
#
# The checkout is mounted, not copied: edit outside, grade inside. What follows "katas" goes to make.
FROM python:3.12-slim

RUN apt-get update && apt-get install --yes --no-install-recommends make && rm -rf /var/lib/apt/lists/*

COPY requirements/run.txt /tmp/requirements/run.txt
RUN pip install --no-cache-dir --requirement /tmp/requirements/run.txt

WORKDIR /kata
ENTRYPOINT ["make", "PYTHON=python3"]
