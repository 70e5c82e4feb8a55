# syntax=docker/dockerfile:1
# The detection server (docs/serve.md). Build: docker build -t veriglot . ; run: docker compose up

FROM python:3.11-slim AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE NOTICE constraints.txt ./
COPY src ./src
# hadolint ignore=DL3042  # the cache stays in this stage, which is thrown away
RUN python -m venv /opt/veriglot \
    && /opt/veriglot/bin/pip install --constraint constraints.txt ".[serve]"

FROM python:3.11-slim
# Nothing is fetched: the weights are in the package. A process that starts writes 65 MB to /tmp for a moment, more than
# /dev/shm has: docker run --read-only --tmpfs /tmp.
ENV PATH=/opt/veriglot/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 \
    VERIGLOT_OFFLINE=1
COPY --from=build /opt/veriglot /opt/veriglot
USER 65534:65534
WORKDIR /
EXPOSE 8322
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8322/ready', timeout=2)"]
ENTRYPOINT ["veriglot", "serve", "--host", "0.0.0.0"]
