# The image of broker, command line and platform.
#   docker build -t queen .
# The target `embedded` adds PostgreSQL, for an installation in one container:
#   docker build -t queen-embedded --target embedded .
# Nothing here depends on the architecture.
FROM debian:bookworm-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc make meson ninja-build pkgconf libc6-dev libuv1-dev \
      libpq-dev libssl-dev zlib1g-dev node-llhttp uthash-dev libxxhash-dev libmariadb-dev python3 python3-yaml scdoc git
COPY . /src
WORKDIR /src
RUN meson setup /build --prefix=/usr --buildtype=debugoptimized -Dhardened=true -Db_pie=true -Dplatform=enabled -Dtests=disabled \
 && ninja -C /build \
 && DESTDIR=/out meson install -C /build --no-rebuild --strip \
 && rm -rf /out/usr/include /out/usr/lib

FROM debian:bookworm-slim AS broker
RUN apt-get update \
 && apt-get install -y --no-install-recommends libuv1 libpq5 libssl3 zlib1g libmariadb3 ca-certificates tini \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --system --gid 10001 queen \
 && useradd --system --uid 10001 --gid queen --home-dir /var/lib/queen --shell /usr/sbin/nologin queen \
 && install -d -o queen -g queen -m 750 /var/lib/queen
COPY --from=build /out/ /
# Listening on all addresses is what a container is for. Set QUEEN_ADMIN_KEY_FILE or JWT_ENABLED before you publish the port.
# A folder below the volume: the volume itself may belong to root, as in Kubernetes.
ENV HOST=0.0.0.0 QUEEN_DATA_DIR=/var/lib/queen/data FILE_BUFFER_DIR=/var/lib/queen/buffers
USER 10001:10001
VOLUME /var/lib/queen
EXPOSE 6632
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/${PORT:-6632} && printf 'GET /ready HTTP/1.0\\r\\n\\r\\n' >&3 && head -1 <&3 | grep -q ' 200 '"]
# tini passes signals on and reaps the processes of the embedded PostgreSQL.
ENTRYPOINT ["tini", "--", "queen"]
CMD ["serve"]

FROM broker AS embedded
USER root
RUN apt-get update \
 && mkdir -p /etc/postgresql-common/createcluster.d && echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.d/queen.conf \
 && apt-get install -y --no-install-recommends postgresql-15 \
 && rm -rf /var/lib/apt/lists/*
USER 10001:10001

# The last one is the default.
FROM broker
