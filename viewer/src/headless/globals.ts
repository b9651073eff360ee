// What the engine takes for granted and a bare V8 does not have. Imported before everything else.

/** UTF-8 to text; what is not UTF-8 becomes U+FFFD, as in a browser (one sign for each byte that does not fit). */
function decodeUtf8(bytes: Uint8Array): string {
  let out = '';
  let codes: number[] = [];
  for (let at = 0; at < bytes.length;) {
    const first = bytes[at++]!;
    let more =
      first < 0x80 ? 0 : first >= 0xc2 && first < 0xe0 ? 1 : first >= 0xe0 && first < 0xf0 ? 2 : first >= 0xf0 && first < 0xf5 ? 3 : -1;
    let code = more === 0 ? first : more < 0 ? 0xfffd : first & (0x3f >> more);
    const [least, start] = [[0, 0x80, 0x800, 0x10000][more] ?? 0, at];
    for (; more > 0; more--) {
      const next = bytes[at] ?? 0;
      if ((next & 0xc0) !== 0x80) break;
      code = (code << 6) | (next & 0x3f);
      at++;
    }
    if (more > 0 || code < least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) [code, at] = [0xfffd, start];
    if (code < 0x10000) codes.push(code);
    else codes.push(0xd800 + ((code - 0x10000) >> 10), 0xdc00 + ((code - 0x10000) & 0x3ff));
    if (codes.length > 8000) {
      out += String.fromCharCode(...codes);
      codes = [];
    }
  }
  return out + String.fromCharCode(...codes);
}

const missing = globalThis as Record<string, unknown>;
missing.TextDecoder ??= class {
  decode(bytes: Uint8Array): string {
    return decodeUtf8(bytes);
  }
};
// Only ever made, never used: nothing here writes Arrow.
missing.TextEncoder ??= class {};
