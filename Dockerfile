# The server: siteloom serve, with a workspace in the volume /workspace. docs/how-to/serve-a-team.md says how.
#
#   docker build -t siteloom .
#
# Any other verb runs in it, too: docker run --rm -v siteloom:/workspace siteloom status

FROM python:3.13-slim AS build
WORKDIR /siteloom
# The exact versions that the tests ran with. All extras but spark, which needs Java, render, which needs a browser, and
# web-poet, which is for spiders.
COPY requirements/build.txt requirements/server.txt requirements/
RUN python -m venv /opt/siteloom \
    && /opt/siteloom/bin/pip install --no-cache-dir --require-hashes --no-deps -r requirements/build.txt \
    && /opt/siteloom/bin/pip install --no-cache-dir --require-hashes --no-deps --no-build-isolation -r requirements/server.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN /opt/siteloom/bin/pip install --no-cache-dir --no-deps --no-build-isolation . \
    && /opt/siteloom/bin/pip check

FROM python:3.13-slim
COPY --from=build /opt/siteloom /opt/siteloom
# With pg_dump, which siteloom backup needs where the tables are in PostgreSQL.
RUN apt-get update && apt-get install --yes --no-install-recommends postgresql-client && rm -r /var/lib/apt/lists/*
# With a home, where numba keeps what it has compiled.
RUN useradd --create-home --uid 10001 siteloom \
    && install --directory --owner=siteloom --group=siteloom /workspace
ENV PATH=/opt/siteloom/bin:$PATH \
    SITELOOM_STORE_WORKSPACE=/workspace
USER siteloom
WORKDIR /home/siteloom
VOLUME /workspace
EXPOSE 8787
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8787/health', timeout=4)"]
ENTRYPOINT ["siteloom"]
CMD ["serve", "--host", "0.0.0.0"]
