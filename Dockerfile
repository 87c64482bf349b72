# The server: siteloom serve, with a workspace in the volume /workspace. docs/how-to/serve-a-team.md says how.
#
#   docker build -t siteloom .
#
# Any other verb runs in it, too: docker run --rm -v siteloom:/workspace siteloom status

FROM python:3.13-slim AS build
WORKDIR /siteloom
COPY pyproject.toml README.md LICENSE ./
COPY src src
# Not spark, which needs Java, nor render, which needs a browser, nor web-poet, which is for spiders.
RUN python -m venv /opt/siteloom \
    && /opt/siteloom/bin/pip install --no-cache-dir '.[server,parquet,postgres,values,embedded,text,crawl]'

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
