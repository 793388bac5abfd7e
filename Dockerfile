# The server in an image, for machines that have a container engine and no Rust.
#
#   docker build -t ack-memory .
#   docker build -t ack-memory --build-arg CARGO_FLAGS=--no-default-features .   # light: minutes
#
# Over standard input and output, as a client starts it. Memories are often readable by their owner
# alone, so the container runs as the owner; it cannot write to them either way:
#
#   docker run --rm -i --network none --read-only --user "$(id -u):$(id -g)" \
#     -v "$HOME/.ack-mem:/memories:ro" ack-memory
#
# Over HTTP, for several clients on this machine. The token is any secret of 16 characters or more:
#
#   export ACK_MEM_TOKEN="$(openssl rand -hex 16)"
#   docker run --rm -p 127.0.0.1:7767:7767 --read-only --user "$(id -u):$(id -g)" -e ACK_MEM_TOKEN \
#     -v "$HOME/.ack-mem:/memories:ro" ack-memory serve --http 0.0.0.0:7767
#   claude mcp add --transport http ack-memory http://127.0.0.1:7767/mcp \
#     --header "Authorization: Bearer $ACK_MEM_TOKEN"
#
# A database that its program is writing to has files beside it (`-wal`, `-shm`): mount the folder,
# never the one file. Where a copy of such a database has to be read, it goes to /tmp: add
# `--tmpfs /tmp`.

ARG RUST=1.95
ARG DEBIAN=trixie

FROM rust:${RUST}-slim-${DEBIAN} AS build
ARG CARGO_FLAGS=""
ARG PROFILE=dist
WORKDIR /src
COPY . .
# The registry and the build folder outlive this step on the building machine; the binary is copied.
# hadolint ignore=SC2086
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --locked --package ack-memory --profile "${PROFILE}" ${CARGO_FLAGS} && \
    install -D "target/${PROFILE}/ack-memory" /out/ack-memory

FROM debian:${DEBIAN}-slim
# For servers that are reached over HTTPS, where the configuration names any.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/ack-memory /usr/local/bin/ack-memory
COPY LICENSE-MIT LICENSE-APACHE /usr/share/doc/ack-memory/
RUN useradd --uid 10001 --create-home ack && install -d -m 755 /memories
USER 10001:10001
ENV ACK_MEM_PATH=/memories
EXPOSE 7767
ENTRYPOINT ["ack-memory"]
CMD ["serve"]
