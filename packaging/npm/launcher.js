#!/usr/bin/env node
// Runs the binary for this platform. Node 22.15 and newer replace this process with it.
"use strict";

const { spawn } = require("node:child_process");
const { accessSync, constants, existsSync } = require("node:fs");

// Filled in by pack.py: platform and processor, to the package that carries the binary.
const PACKAGES = {};

// The program that loads binaries linked with glibc.
const LOADERS = {
  x64: "/lib64/ld-linux-x86-64.so.2",
  arm64: "/lib/ld-linux-aarch64.so.1",
};

function fail(message) {
  process.stderr.write(`ack-memory: ${message}\n`);
  process.exit(1);
}

function findBinary() {
  const platform = `${process.platform} ${process.arch}`;
  const name = PACKAGES[platform];
  if (name === undefined) {
    fail(`there is no binary for ${platform}, only for ${Object.keys(PACKAGES).join(", ")}`);
  }
  const loader = process.platform === "linux" ? LOADERS[process.arch] : undefined;
  if (loader !== undefined && !existsSync(loader)) {
    fail(`the binary needs glibc, and \`${loader}\` is not there (on Alpine, for one)`);
  }
  try {
    return require.resolve(`${name}/bin/ack-memory`);
  } catch {
    fail(
      `the package \`${name}\` with the binary for ${platform} is not installed.\n` +
        "It is an optional dependency of `ack-memory`: npm skips it with `--omit=optional`,\n" +
        "and `node_modules` from another platform does not have it. Install again here,\n" +
        "without `--omit=optional`.",
    );
  }
}

function check(binary) {
  try {
    accessSync(binary, constants.X_OK);
  } catch {
    fail(`\`${binary}\` cannot be run; install the package again`);
  }
}

// A server runs as long as its client. Node would take about 40 MB more all that time.
function replaceProcess(binary, args) {
  if (typeof process.execve !== "function") return;
  // The call is experimental. Its warning must not appear in the client's log.
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    process.execve(binary, [binary, ...args], process.env);
  } catch {
    process.emitWarning = emitWarning;
  }
}

function runChild(binary, args) {
  const child = spawn(binary, args, { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) {
    process.on(signal, () => child.kill(signal));
  }
  child.on("error", (error) => fail(`\`${binary}\` cannot be run: ${error.message}`));
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

const binary = findBinary();
const args = process.argv.slice(2);
check(binary);
replaceProcess(binary, args);
runChild(binary, args);
