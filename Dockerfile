# One image for web, worker, runner and beat. The dependencies are the hashed lock; a folder wheelhouse/ (make wheelhouse) replaces the index.
FROM python:3.11-slim-bookworm AS build
WORKDIR /srv/quadgate
COPY pyproject.toml requirements tools/setup.sh wheelhouse* ./incoming/
RUN mkdir -p requirements tools wheelhouse \
 && mv incoming/*.txt requirements/ && mv incoming/setup.sh tools/ && mv incoming/pyproject.toml . \
 && { mv incoming/*.whl wheelhouse/ 2>/dev/null || rmdir wheelhouse; } \
 && { [ -d wheelhouse ] && export QUADGATE_WHEELHOUSE=/srv/quadgate/wheelhouse; tools/setup.sh run; } \
 && .venv/bin/python -m compileall -q .venv \
 && rm -rf incoming wheelhouse

FROM python:3.11-slim-bookworm
# ssh reaches the targets; its user needs a passwd entry.
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends openssh-client ca-certificates tzdata \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 10001 quadgate \
 && useradd --uid 10001 --gid 10001 --home-dir /state/home --no-create-home --shell /bin/sh quadgate \
 && install -d -m 0700 -o quadgate -g quadgate /state /state/evidence /tmp/qg-10001
COPY --from=build /srv/quadgate /srv/quadgate
COPY app /srv/quadgate/app
COPY gates /srv/quadgate/gates
COPY playbooks /srv/quadgate/playbooks
COPY templates /srv/quadgate/templates
COPY locale /srv/quadgate/locale
COPY migrations /srv/quadgate/migrations
RUN /srv/quadgate/.venv/bin/python -m compileall -q /srv/quadgate/app /srv/quadgate/gates /srv/quadgate/migrations
ENV PATH=/srv/quadgate/.venv/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 LC_ALL=C.UTF-8 LANG=C.UTF-8 \
    HOME=/state/home QUADGATE_STATE_DIR=/state
WORKDIR /srv/quadgate
USER 10001:10001
ENTRYPOINT ["quadgate"]
CMD ["--help"]
