# Two images from one file:
#   docker build --target cpu  --build-arg TORCH_INDEX=... -t valleyscope:0.1.0-cpu .
#   docker build --target cuda -t valleyscope:0.1.0-cuda .
# Libraries come from deploy/locks with exact versions and hashes (`make lock`). TORCH_INDEX is an index of CPU builds of
# torch; without it the cpu image gets the CUDA build, which also works but is several gigabytes larger.
# Pin the base by digest for a release: --build-arg BASE=python@sha256:...
ARG BASE=python:3.11.13-slim-bookworm

FROM ${BASE} AS base
ENV PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1

FROM base AS tools
RUN python -m venv /opt/valleyscope
ENV PATH=/opt/valleyscope/bin:$PATH

FROM tools AS libraries-cpu
ARG TORCH_INDEX=""
COPY deploy/locks/cpu.txt deploy/locks/cuda.txt /locks/
RUN if [ -n "$TORCH_INDEX" ]; then \
        pip install --require-hashes --no-deps -r /locks/cpu.txt \
        && grep -oE '^torch(vision)?==[^ ]+' /locks/cuda.txt > /locks/torch.txt \
        && pip install --no-deps --index-url "$TORCH_INDEX" -r /locks/torch.txt; \
    else \
        pip install --require-hashes --no-deps -r /locks/cuda.txt; \
    fi \
    && python -c "import torch, torchvision, h5py, psycopg"

FROM tools AS libraries-cuda
COPY deploy/locks/cuda.txt /locks/
RUN pip install --require-hashes --no-deps -r /locks/cuda.txt \
    && python -c "import torch, torchvision; assert torch.version.cuda, 'this is no CUDA build of torch'"

# Only the wheel, so a change of the program does not rebuild the layers of libraries.
FROM tools AS wheel
COPY deploy/locks/build.txt /locks/
RUN pip install --require-hashes --no-deps -r /locks/build.txt
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY training training
COPY landscape landscape
COPY static static
COPY app app
COPY valleyscope valleyscope
RUN pip wheel --no-deps --no-build-isolation --no-index --wheel-dir /wheel .

FROM base AS runtime
# A fixed user id, so volumes and NFS exports can belong to it; it owns only its home.
RUN groupadd --system --gid 10001 valley \
    && useradd --system --uid 10001 --gid valley --home-dir /var/lib/valleyscope --no-create-home valley \
    && install -d -o valley -g valley -m 0750 /var/lib/valleyscope
# The root file system may be read-only: only the home (a volume) and /tmp (a tmpfs) are written.
ENV PATH=/opt/valleyscope/bin:$PATH \
    HOME=/tmp \
    XDG_CACHE_HOME=/tmp/cache \
    MPLCONFIGDIR=/tmp/matplotlib \
    OMP_NUM_THREADS=1 \
    VALLEY_HOME=/var/lib/valleyscope \
    VALLEY_DATA=/var/lib/valleyscope/datasets \
    VALLEY_HOST=0.0.0.0 \
    VALLEY_HEARTBEAT=/tmp/worker.beat
VOLUME /var/lib/valleyscope
WORKDIR /var/lib/valleyscope
EXPOSE 8360
ENTRYPOINT ["valley"]
CMD ["serve"]
# For the server; for a worker use `valley health worker`, as docker-compose.yml does.
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 CMD ["valley", "health"]

FROM runtime AS cpu
COPY --from=libraries-cpu /opt/valleyscope /opt/valleyscope
RUN --mount=type=bind,from=wheel,source=/wheel,target=/wheel pip install --no-deps --no-index /wheel/*.whl
USER 10001:10001

FROM runtime AS cuda
# What the container toolkit mounts: the driver, and nvidia-smi to choose a device.
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility
COPY --from=libraries-cuda /opt/valleyscope /opt/valleyscope
RUN --mount=type=bind,from=wheel,source=/wheel,target=/wheel pip install --no-deps --no-index /wheel/*.whl
USER 10001:10001
