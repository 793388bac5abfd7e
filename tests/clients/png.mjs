// Makes the PNG of a page smaller: at most 256 colours, and the best compression. See the PNG
// specification, third edition, 5 (chunks) and 9 (filters).

import { deflateSync, inflateSync } from "node:zlib";

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const COLOURS = 256;

function chunks(png) {
  const found = {};
  for (let at = SIGNATURE.length; at < png.length;) {
    const length = png.readUInt32BE(at);
    const type = png.toString("latin1", at + 4, at + 8);
    found[type] = Buffer.concat([
      found[type] ?? Buffer.alloc(0),
      png.subarray(at + 8, at + 8 + length),
    ]);
    at += length + 12;
  }
  return found;
}

function paeth(left, above, corner) {
  const guess = left + above - corner;
  const [a, b, c] = [left, above, corner].map((near) => Math.abs(guess - near));
  return a <= b && a <= c ? left : b <= c ? above : corner;
}

/** The pixels without filters, `size` bytes each. */
function pixels(data, width, height, size) {
  const line = width * size;
  const out = Buffer.alloc(line * height);
  for (let y = 0; y < height; y += 1) {
    const filter = data[y * (line + 1)];
    for (let x = 0; x < line; x += 1) {
      const raw = data[y * (line + 1) + 1 + x];
      const left = x >= size ? out[y * line + x - size] : 0;
      const above = y > 0 ? out[(y - 1) * line + x] : 0;
      const corner = x >= size && y > 0 ? out[(y - 1) * line + x - size] : 0;
      const added = [0, left, above, (left + above) >> 1, paeth(left, above, corner)][filter];
      out[y * line + x] = raw + added;
    }
  }
  return out;
}

let table;
function crc(data) {
  table ??= Array.from({ length: 256 }, (_, n) => {
    let value = n;
    for (let bit = 0; bit < 8; bit += 1) {
      value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
    }
    return value >>> 0;
  });
  let value = 0xffffffff;
  for (const byte of data) {
    value = table[(value ^ byte) & 0xff] ^ (value >>> 8);
  }
  return (value ^ 0xffffffff) >>> 0;
}

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc(body));
  return Buffer.concat([length, body, sum]);
}

/** The most frequent colours, and for each pixel the nearest of them. */
function indexed(rgb, size) {
  const pixel = (n) => (rgb[n * size] << 16) | (rgb[n * size + 1] << 8) | rgb[n * size + 2];
  const parts = (colour) => [colour >> 16, (colour >> 8) & 0xff, colour & 0xff];
  const counts = new Map();
  const indices = Buffer.alloc(rgb.length / size);
  for (let n = 0; n < indices.length; n += 1) {
    counts.set(pixel(n), (counts.get(pixel(n)) ?? 0) + 1);
  }
  // Of colours that look the same, the most frequent: else shades of grey leave no room for red.
  const frequent = new Map();
  for (const [colour] of [...counts].sort((one, other) => other[1] - one[1])) {
    const look = colour & 0xf8f8f8;
    frequent.set(look, frequent.get(look) ?? colour);
  }
  const palette = [...frequent.values()].slice(0, COLOURS).map(parts);
  const nearest = new Map();
  for (const colour of counts.keys()) {
    const [r, g, b] = parts(colour);
    const far = palette.map((own) => (own[0] - r) ** 2 + (own[1] - g) ** 2 + (own[2] - b) ** 2);
    nearest.set(colour, far.indexOf(Math.min(...far)));
  }
  for (let n = 0; n < indices.length; n += 1) {
    indices[n] = nearest.get(pixel(n));
  }
  return { palette: Buffer.from(palette.flat()), indices };
}

/** The same picture in fewer bytes. */
export function shrink(png) {
  const { IHDR, IDAT } = chunks(png);
  const [width, height] = [IHDR.readUInt32BE(0), IHDR.readUInt32BE(4)];
  const size = { 2: 3, 6: 4 }[IHDR[9]];
  const { palette, indices } = indexed(pixels(inflateSync(IDAT), width, height, size), size);
  const lines = Array.from({ length: height }, (_, y) =>
    Buffer.concat([Buffer.from([0]), indices.subarray(y * width, (y + 1) * width)]),
  );
  const header = Buffer.from(IHDR);
  header[9] = 3;
  return Buffer.concat([
    SIGNATURE,
    chunk("IHDR", header),
    chunk("PLTE", palette),
    chunk("IDAT", deflateSync(Buffer.concat(lines), { level: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}
